// Forms with files that a client sends, read by a server of the library and by Python.
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
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

/// The number of descriptors of the file that this process has.
int open_files(const std::string& path) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry.path(), closed) == path) ++count;
  }
  return count;
}

const Error cancelled = system_error(ECANCELED);

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

/// Opens the files of the form, sends it, and reads the answer.
Task<> send_files(Client& client, std::string url, std::string file, std::string& into) {
  MultipartForm form;
  form.add_file("a", file);
  form.add("b", "text");
  form.add_file("c", file);
  ClientRequest request(Method::post, url);
  const auto attached = co_await form.attach_to(request);
  if (!attached) {
    into = attached.error().message();
    co_return;
  }
  auto response = co_await client.send(std::move(request));
  if (!response) {
    into = response.error().message();
    co_return;
  }
  const auto text = co_await response->read_text();
  into = text ? "sent" : text.error().message();
}

// A form is stopped, or its task is destroyed, after each number of iterations.
TEST_P(MultipartForms, cancellation_at_every_await) {
  http::Server server = serve();
  const std::string url = "http://" + server.endpoint().to_string();
  const std::string path = folder.path() + "/file";
  write_file(path, std::string(100'000, 'x'));
  Client client(loop());
  for (const bool destroys : {false, true}) {
    for (int iterations = 0;; ++iterations) {
      SCOPED_TRACE(testing::Message() << iterations << " iterations, destroys: " << destroys);
      std::string outcome;
      std::optional<TaskScope> scope(std::in_place, loop());
      scope->spawn(send_files(client, url, path, outcome));
      for (int i = 0; i < iterations && outcome.empty(); ++i) loop().run_once();
      const bool has_ended = !outcome.empty();
      scope->request_stop();
      if (destroys) scope.reset();
      while (!destroys && outcome.empty()) loop().run_once();
      if (has_ended) {
        EXPECT_EQ(outcome, "sent");
        EXPECT_GE(iterations, 3) << "the files are awaited";
        break;
      }
      if (!destroys && outcome != "sent") {
        EXPECT_EQ(outcome, cancelled.message());
      }
      if (HasFailure()) break;
    }
  }
  // The descriptors of the files are closed, those of the server's connections in the background.
  std::string outcome;
  run(send_files(client, url, path, outcome));
  EXPECT_EQ(outcome, "sent");
  EXPECT_TRUE(eventually([&] { return open_files(path) == 0; }));
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
