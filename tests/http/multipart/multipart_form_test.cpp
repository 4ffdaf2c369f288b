// Forms with files that a client sends, read by a server of the library and by Python.
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/temporary_folder.h"

namespace tambour::multipart_form_test {
namespace {

using http::Client;
using http::ClientRequest;
using http::Method;
using http::MultipartForm;
using http::Request;
using http::Response;

void write_file(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

class MultipartForms : public test::OnEveryBackend {
 protected:
  /// Answers with the parts: name|file name|type|size and hash of the contents.
  http::Server serve() {
    return or_throw(http::Server::listen(
        loop(), Endpoint::loopback_v4(0), [this](Request& request, Response& response) -> Task<> {
          length = request.body().length();
          const auto form = co_await http::read_form(request, 8 * 1024 * 1024);
          if (!form) co_return;
          std::string text;
          for (const http::FormField& field : form->fields) {
            text += field.name + "|" + field.file_name.value_or("none") + "|" + field.content_type +
                    "|" +
                    (field.value.size() < 40 ? field.value : std::to_string(field.value.size()));
            hashes.push_back(std::hash<std::string>()(field.value));
            text += "\n";
          }
          response.send(text);
        }));
  }
  std::string sent(http::Server& server, MultipartForm form) {
    std::string text;
    run([](EventLoop& loop, std::string url, MultipartForm sending, std::string& into) -> Task<> {
      Client client(loop);
      ClientRequest request(Method::post, url);
      const auto attached = co_await sending.attach_to(request);
      if (!attached) {
        into = attached.error().message();
        co_return;
      }
      auto response = co_await client.send(std::move(request));
      if (!response) {
        into = response.error().message();
        co_return;
      }
      const auto body = co_await response->read_text();
      into = body.value_or("error in body");
    }(loop(), "http://" + server.endpoint().to_string(), std::move(form), text));
    return text;
  }

  test::TemporaryFolder folder;
  std::optional<std::uint64_t> length;
  std::vector<std::size_t> hashes;
};

TAMBOUR_ON_EVERY_BACKEND(MultipartForms);

TEST_P(MultipartForms, texts_contents_and_files) {
  http::Server server = serve();
  const std::string large = [] {
    std::string text;
    while (text.size() < 300'001) text += static_cast<char>(text.size() * 31 % 251);
    return text;
  }();
  write_file(folder.path() + "/photo.png", large);
  write_file(folder.path() + "/empty", "");
  MultipartForm form;
  form.add("title", "A \"b\"\r\n--x");
  form.add("na\"me\r\n", "");
  form.add_contents("notes", Buffer("text"), {.file_name = "no\"tes.txt"});
  form.add_file("photo", folder.path() + "/photo.png");
  form.add_file("empty", folder.path() + "/empty",
                {.file_name = "x", .content_type = "text/x; charset=utf-8"});
  form.add("last", "end");
  EXPECT_EQ(sent(server, std::move(form)),
            "title|none|text/plain|A \"b\"\r\n--x\n"
            "na\"me\r\n|none|text/plain|\n"
            "notes|no\"tes.txt|text/plain; charset=utf-8|text\n"
            "photo|photo.png|image/png|300001\n"
            "empty|x|text/x; charset=utf-8|\n"
            "last|none|text/plain|end\n");
  EXPECT_EQ(hashes.at(3), std::hash<std::string>()(large));
  ASSERT_TRUE(length) << "sent with its length";
  EXPECT_GT(*length, large.size());
}

TEST_P(MultipartForms, forms_in_memory_may_be_repeated) {
  MultipartForm form;
  form.add("a", "b");
  run([](MultipartForm sending) -> Task<> {
    ClientRequest request(Method::post, "http://host/");
    request.source_bytes = 1;
    const auto attached = co_await sending.attach_to(request);
    EXPECT_TRUE(attached);
    EXPECT_EQ(request.source, nullptr);
    EXPECT_FALSE(request.source_bytes);
    EXPECT_TRUE(request.body.find("name=\"a\"\r\n\r\nb\r\n--tambour-"));
  }(std::move(form)));
  http::Server server = serve();
  EXPECT_EQ(sent(server, MultipartForm()), "") << "no part";
}

TEST_P(MultipartForms, failures) {
  http::Server server = serve();
  MultipartForm missing;
  missing.add_file("a", folder.path() + "/missing");
  EXPECT_EQ(sent(server, std::move(missing)), system_error(ENOENT).message());
  MultipartForm unnamed;
  unnamed.add_file("a", "");
  EXPECT_EQ(sent(server, std::move(unnamed)), system_error(ENOENT).message());
  MultipartForm injected;
  injected.add_contents("a", Buffer("b"), {.content_type = "text/plain\r\nX: y"});
  EXPECT_EQ(sent(server, std::move(injected)),
            make_error_code(http::ErrorCode::bad_field_value).message());
}

TEST_P(MultipartForms, a_file_that_becomes_shorter) {
  http::Server server = serve();
  const std::string path = folder.path() + "/file";
  write_file(path, std::string(300'000, 'x'));
  std::string text;
  run([](EventLoop& loop, std::string url, std::string file, std::string& into) -> Task<> {
    Client client(loop);
    MultipartForm form;
    form.add_file("a", file);
    ClientRequest request(Method::post, url);
    const auto attached = co_await form.attach_to(request);
    EXPECT_TRUE(attached);
    std::filesystem::resize_file(file, 100'000);
    auto response = co_await client.send(std::move(request));
    into = response ? "response" : response.error().message();
  }(loop(), "http://" + server.endpoint().to_string(), path, text));
  EXPECT_EQ(text, Error(StreamError::truncated).message());
}

}  // namespace
}  // namespace tambour::multipart_form_test
