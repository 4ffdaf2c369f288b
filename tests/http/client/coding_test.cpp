// The HTTP client and compressed responses.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/client.h>
#include <tambour/net/stream_error.h>

#include "http/support/coded.h"
#include "http/support/scripted_server.h"

namespace tambour::coding_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using http::Coding;
using http::Method;
using test::Answer;
using test::Arrived;
using test::encoded;
using test::ok;
using test::ScriptedServer;
using test::text_of_bytes;

struct Got {
  std::string text{};  ///< Or the error.
  std::string coding{};
  bool has_length = false;
};

Task<> get(Client& client, ClientRequest request, Got& got) {
  auto response = co_await client.send(std::move(request));
  if (!response) {
    got.text = "error: " + response.error().message();
    co_return;
  }
  got.coding = response->headers().joined("Content-Encoding");
  got.has_length = response->headers().contains("Content-Length");
  auto text = co_await response->read_text();
  got.text = text ? *text : "error in body: " + text.error().message();
  EXPECT_EQ(response->is_complete(), text.has_value());
}

class HttpClientCoding : public testing::Test {
 protected:
  void SetUp() override {
    if (!http::is_available(Coding::gzip)) GTEST_SKIP() << "the library was built without gzip";
  }
  /// What the client makes of an answer.
  Got got(Answer answer, ClientRequest request = {}, ClientOptions options = {}) {
    EventLoop loop;
    ScriptedServer server(loop, [&](const Arrived& arrived) {
      accepted_ = arrived.head.fields.joined("Accept-Encoding");
      return answer;
    });
    Client client(loop, std::move(options));
    request.url = server.url();
    Got result;
    spawn(loop, [](EventLoop& place, Task<> task) -> Task<> {
      co_await std::move(task);
      place.stop();
    }(loop, get(client, std::move(request), result)));
    loop.run();
    idle_ = client.idle_connections();
    return result;
  }

  std::string accepted_;
  std::size_t idle_ = 0;
};

TEST_F(HttpClientCoding, responses_are_decoded) {
  const std::string text = text_of_bytes(400'000);
  for (const Coding coding : {Coding::gzip, Coding::br, Coding::zstd, Coding::deflate}) {
    if (!http::is_available(coding)) continue;
    const std::string name(http::name_of(coding));
    const Got result = got(ok(encoded(coding, text), "Content-Encoding: " + name + "\r\n"));
    EXPECT_TRUE(result.text == text) << result.text.substr(0, 100);
    EXPECT_EQ(result.coding, "");
    EXPECT_FALSE(result.has_length);
    EXPECT_EQ(idle_, 1U) << "the connection can be used again";
    EXPECT_TRUE(accepted_.contains("gzip"));
    EXPECT_FALSE(accepted_.contains("deflate"));
  }
  EXPECT_TRUE(got(ok(encoded(Coding::deflate, encoded(Coding::gzip, text)),
                     "Content-Encoding: gzip\r\nContent-Encoding: deflate\r\n"))
                  .text == text);
}

TEST_F(HttpClientCoding, responses_that_are_not_decoded) {
  const std::string coded = encoded(Coding::gzip, "text");
  const std::string field = "Content-Encoding: gzip\r\n";
  ClientRequest request;
  EXPECT_TRUE(request.fields.set("Accept-Encoding", "gzip"));
  EXPECT_EQ(got(ok(coded, field), std::move(request)).text, coded) << "the program decodes it";
  EXPECT_EQ(accepted_, "gzip");

  ClientRequest part;
  EXPECT_TRUE(part.fields.set("Range", "bytes=0-10"));
  EXPECT_EQ(got(ok(coded, field), std::move(part)).text, coded);
  EXPECT_EQ(accepted_, "");

  ClientOptions options;
  options.decompress = false;
  const Got plain = got(ok(coded, field), {}, options);
  EXPECT_EQ(plain.text, coded);
  EXPECT_EQ(plain.coding, "gzip");
  EXPECT_TRUE(plain.has_length);
  EXPECT_EQ(accepted_, "");

  const Got unknown = got(ok("secret", "Content-Encoding: aes128gcm\r\n"));
  EXPECT_EQ(unknown.text, "secret");
  EXPECT_EQ(unknown.coding, "aes128gcm");
  EXPECT_EQ(got(ok(coded, "Content-Encoding: aes128gcm, gzip\r\n")).text, coded);
}

TEST_F(HttpClientCoding, responses_without_a_body) {
  const Got head = got(ok(encoded(Coding::gzip, "text"), "Content-Encoding: gzip\r\n"),
                       ClientRequest(Method::head, ""));
  EXPECT_EQ(head.text, "");
  EXPECT_EQ(head.coding, "gzip");
  EXPECT_TRUE(head.has_length);
  EXPECT_EQ(got(ok("", "Content-Encoding: gzip\r\n")).text, "");
}

TEST_F(HttpClientCoding, incomplete_and_malformed_bodies) {
  const std::string coded = encoded(Coding::gzip, text_of_bytes(10'000));
  const std::string field = "Content-Encoding: gzip\r\n";
  EXPECT_EQ(got(ok(coded.substr(0, coded.size() - 1), field)).text,
            "error in body: " + Error(StreamError::truncated).message());
  const std::string malformed =
      "error in body: " + make_error_code(http::ErrorCode::bad_content_coding).message();
  EXPECT_EQ(got(ok("text", field)).text, malformed);
  EXPECT_EQ(got(ok(coded + "more", field)).text, malformed);
  std::string changed = coded;
  changed[coded.size() / 2] = static_cast<char>(changed[coded.size() / 2] ^ 1);
  EXPECT_EQ(got(ok(changed, field)).text, malformed);
}

TEST_F(HttpClientCoding, limits_of_decoded_bodies) {
  const std::string zeros = encoded(Coding::gzip, std::string(20'000'000, '\0'));
  const std::string field = "Content-Encoding: gzip\r\n";
  EXPECT_EQ(got(ok(zeros, field)).text,
            "error in body: " + make_error_code(http::ErrorCode::body_too_large).message())
      << "the limit of read_text()";
  ClientOptions options;
  options.limits.body_bytes_max = 1'000'000;
  EXPECT_EQ(got(ok(zeros, field), {}, options).text,
            "error in body: " + make_error_code(http::ErrorCode::decoded_too_large).message());
  EXPECT_EQ(idle_, 0U);
}

}  // namespace
}  // namespace tambour::coding_test
