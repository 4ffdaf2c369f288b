// compress() and decode_requests(): which responses are compressed, how they are framed, and what
// handlers get of compressed requests.
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "http/support/coded.h"
#include "http/support/curl.h"
#include "http/support/serving.h"
#include "support/network.h"

namespace tambour::compress_test {
namespace {

using namespace std::chrono_literals;
using http::Coding;
using http::Handler;
using http::Request;
using http::Response;
using http::Router;
using http::Status;
using test::decoded_body;
using test::encoded;
using test::text_of_bytes;

const std::string text = text_of_bytes(5000);

/// Answers with the text, its type and more fields.
Handler answer(http::Fields fields, Status status = Status::ok, std::string body = text) {
  return [fields, status, body](Request&, Response& response) {
    for (const http::Field field : fields)
      EXPECT_TRUE(response.headers().add(field.name, field.value));
    EXPECT_TRUE(response.send(status, body));
  };
}

http::Fields of_type(std::string_view type) {
  http::Fields fields;
  EXPECT_TRUE(fields.add("Content-Type", type));
  return fields;
}

http::Fields text_and(std::string_view name, std::string_view value) {
  http::Fields fields = of_type("text/plain");
  EXPECT_TRUE(fields.add(name, value));
  return fields;
}

class HttpCompress : public test::Serving {
 public:
  void SetUp() override {
    if (!http::is_available(Coding::gzip)) GTEST_SKIP() << "the library was built without gzip";
  }
  void serve_compressed(Handler handler, http::CompressOptions options = {},
                        http::ServerOptions server = {}) {
    Router router;
    router.use(or_throw(http::compress(std::move(options)))).any("/{path...}", std::move(handler));
    serve(std::move(router).handler(), std::move(server));
  }
  test::Reply reply(std::string fields = "Accept-Encoding: gzip\r\n", std::string method = "GET",
                    std::string body = "") {
    if (!body.empty()) fields += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return run([](HttpCompress& http_compress, std::string sent,
                  http::Method by) -> Task<test::Reply> {
      TcpStream stream = co_await http_compress.open();
      static_cast<void>(co_await stream.write(std::string_view(sent)));
      Buffer in;
      auto got = co_await test::read_reply(stream, in, by);
      co_return got ? *got : test::Reply{.body = "error: " + got.error().message()};
    }(*this, method + " / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body,
                                   http::Method::parse(method).value()));
  }
  /// The coding of the reply to a client that accepts gzip; checks the body.
  std::string coding_of(Handler handler, std::string fields = "Accept-Encoding: gzip\r\n") {
    server_.reset();
    serve_compressed(std::move(handler));
    const test::Reply got = reply(std::move(fields));
    const std::string coding(got.fields.get("Content-Encoding").value_or("none"));
    const std::string body = coding == "gzip" ? decoded_body(Coding::gzip, got.body) : got.body;
    EXPECT_TRUE(body == text || http::has_no_body(got.status));
    return coding;
  }
};

/// A cache updates what it has stored only if the tags correspond (RFC 9111, section 4.3.4).
TEST_F(HttpCompress, not_modified_has_the_tag_of_the_compressed_response) {
  http::Fields fields = of_type("text/plain");
  EXPECT_TRUE(fields.add("ETag", "\"x\""));
  serve_compressed(answer(fields));
  EXPECT_EQ(reply().fields.get("ETag"), "W/\"x\"");
  server_.reset();
  serve_compressed(answer(fields, Status::not_modified, ""));
  EXPECT_EQ(reply().fields.get("ETag"), "W/\"x\"");
  EXPECT_EQ(reply("").fields.get("ETag"), "\"x\"");
}

TEST_F(HttpCompress, text_is_sent_with_the_coding_that_the_client_prefers) {
  serve_compressed(answer(of_type("text/html; charset=utf-8")));
  for (const auto& [accepted, coding] : {std::pair("gzip", Coding::gzip),
                                         {"br", Coding::br},
                                         {"zstd", Coding::zstd},
                                         {"gzip, br;q=0.1", Coding::gzip}}) {
    if (!http::is_available(coding)) continue;
    const test::Reply got = reply("Accept-Encoding: " + std::string(accepted) + "\r\n");
    EXPECT_EQ(got.fields.get("Content-Encoding"), http::name_of(coding));
    EXPECT_EQ(got.fields.get("Content-Length"), std::to_string(got.body.size()));
    EXPECT_EQ(got.fields.get("Vary"), "Accept-Encoding");
    EXPECT_LT(got.body.size(), text.size() / 2);
    EXPECT_TRUE(decoded_body(coding, got.body) == text) << accepted;
  }
  for (const char* const fields :
       {"", "Accept-Encoding: identity\r\n", "Accept-Encoding: lzma\r\n"}) {
    const test::Reply got = reply(fields);
    EXPECT_FALSE(got.fields.contains("Content-Encoding"));
    EXPECT_EQ(got.fields.get("Vary"), "Accept-Encoding") << "caches must not mix them up";
    EXPECT_TRUE(got.body == text);
  }
}

TEST_F(HttpCompress, media_types) {
  for (const char* const type :
       {"text/plain", "TEXT/CSS", "application/json", "application/problem+json", "image/svg+xml",
        "application/javascript; charset=utf-8", "text/event-stream"})
    EXPECT_EQ(coding_of(answer(of_type(type))), "gzip") << type;
  for (const char* const type : {"image/png", "application/zip", "application/octet-stream",
                                 "application/jsonx", "video/mp4", "texts/plain", "json"})
    EXPECT_EQ(coding_of(answer(of_type(type))), "none") << type;
  EXPECT_EQ(coding_of(answer({})), "none");
}

TEST_F(HttpCompress, responses_that_are_sent_as_they_are) {
  EXPECT_EQ(coding_of(answer(text_and("Content-Encoding", "br"))), "br");
  EXPECT_EQ(
      coding_of(answer(text_and("Content-Range", "bytes 0-4999/9000"), Status::partial_content)),
      "none");
  EXPECT_EQ(coding_of(answer(text_and("Cache-Control", "public, no-transform"))), "none");
  EXPECT_EQ(coding_of(answer(text_and("Content-Digest", "sha-256=:YQ==:"))), "none");
  EXPECT_EQ(coding_of(answer(of_type("text/plain"), Status::not_found)), "gzip");
  EXPECT_EQ(coding_of(answer(of_type("text/plain"), Status::no_content, "")), "none");
  EXPECT_EQ(coding_of(answer(of_type("text/plain"), Status::not_modified, "")), "none");
}

TEST_F(HttpCompress, small_bodies_are_sent_as_they_are) {
  serve_compressed([](Request& request, Response& response) {
    EXPECT_TRUE(response.headers().set("Content-Type", "text/plain"));
    response.send(text.substr(0, request.headers().contains("Large") ? 1024 : 1023));
  });
  EXPECT_FALSE(reply().fields.contains("Content-Encoding"));
  EXPECT_FALSE(reply().fields.contains("Vary"));
  EXPECT_TRUE(reply("Large: 1\r\nAccept-Encoding: gzip\r\n").fields.contains("Content-Encoding"));
}

TEST_F(HttpCompress, fields_that_name_the_bytes) {
  http::Fields fields = text_and("ETag", "\"tag\"");
  EXPECT_TRUE(fields.add("Accept-Ranges", "bytes"));
  EXPECT_TRUE(fields.add("Vary", "Origin"));
  serve_compressed(answer(fields));
  test::Reply got = reply();
  EXPECT_EQ(got.fields.get("ETag"), "W/\"tag\"");
  EXPECT_EQ(got.fields.joined("Vary"), "Origin, Accept-Encoding");
  EXPECT_FALSE(got.fields.contains("Accept-Ranges"));
  got = reply("");
  EXPECT_EQ(got.fields.get("ETag"), "\"tag\"");
  EXPECT_TRUE(got.fields.contains("Accept-Ranges"));
}

TEST_F(HttpCompress, head_has_the_fields_of_get) {
  serve_compressed(answer(of_type("text/plain")));
  const test::Reply got = reply();
  const test::Reply head = reply("Accept-Encoding: gzip\r\n", "HEAD");
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.fields.get("Content-Length"), got.fields.get("Content-Length"));
  EXPECT_EQ(head.fields.get("Content-Encoding"), "gzip");
  server_.reset();
  serve_compressed([](Request&, Response& response) {
    EXPECT_TRUE(response.headers().set("Content-Type", "text/plain"));
    response.set_length(5000);
    response.send("");
  });
  EXPECT_EQ(reply("Accept-Encoding: gzip\r\n", "HEAD").fields.get("Content-Encoding"), "gzip");
  EXPECT_EQ(reply("", "HEAD").fields.get("Content-Length"), "5000");
}

TEST_F(HttpCompress, large_bodies_are_compressed_while_they_are_sent) {
  const std::string large = text_of_bytes(3'000'000);
  serve_compressed(answer(of_type("text/plain"), Status::ok, large));
  const test::Reply got = reply();
  EXPECT_EQ(got.fields.get("Transfer-Encoding"), "chunked");
  EXPECT_TRUE(got.is_persistent);
  EXPECT_TRUE(decoded_body(Coding::gzip, got.body) == large);
}

TEST_F(HttpCompress, each_write_of_a_stream_arrives_at_once) {
  serve_compressed([](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(response.headers().set("Content-Type", "text/event-stream"));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(co_await response.write("data: " + std::to_string(i) + "\n\n"));
      EXPECT_TRUE(co_await sleep_for(1s));
    }
    http::Fields trailers;
    EXPECT_TRUE(trailers.add("Events", "3"));
    EXPECT_TRUE(response.end(trailers));
  });
  const auto seen = run([](HttpCompress& http_compress) -> Task<std::string> {
    TcpStream stream = co_await http_compress.open();
    static_cast<void>(co_await stream.write(
        std::string_view("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")));
    http::detail::h1::ResponseParser parser({}, http::detail::h1::ParsingMode::strict);
    Buffer in;
    Buffer body;
    http::detail::coding::BodyDecoder decoder({Coding::gzip}, {});
    std::string log;
    while (!parser.is_complete()) {
      const auto got = co_await stream.read(in);
      if (!got || *got == 0) break;
      if (!parser.has_head() && !parser.parse_head(in, http::Method::get).value()) continue;
      Buffer received;
      while (parser.read_body(in, received, SIZE_MAX).value() > 0) {
      }
      decoder.append(std::move(received));
      Buffer decoded;
      EXPECT_TRUE(decoder.read(decoded, SIZE_MAX));
      log += std::to_string(http_compress.loop_.now().time_since_epoch() / 1s) + ": " +
             decoded.to_string();
    }
    EXPECT_TRUE(decoder.end());
    co_return log + parser.trailers().joined("Events");
  }(*this));
  // The seconds differ by one.
  std::string times;
  for (std::size_t at = 0; (at = seen.find(": data", at)) != std::string::npos; ++at)
    times += seen[at - 1];
  ASSERT_EQ(times.size(), 3U) << seen;
  EXPECT_EQ(times[1] - times[0], 1) << seen;
  EXPECT_EQ(times[2] - times[1], 1) << seen;
  EXPECT_TRUE(seen.ends_with("3")) << seen;
}

TEST_F(HttpCompress, a_response_that_is_too_short_resets_the_connection) {
  http::ServerOptions options;
  std::string thrown;
  options.listen.on_error = [&thrown](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::system_error& caught) {
      thrown = caught.code().message();
    }
  };
  serve_compressed(
      [](Request&, Response& response) -> Task<> {
        EXPECT_TRUE(response.headers().set("Content-Type", "text/plain"));
        response.set_length(5000);
        EXPECT_TRUE(co_await response.write(text.substr(0, 4999)));
        const auto more = co_await response.write("ab");
        EXPECT_EQ(more.error(), http::ErrorCode::response_too_long);
      },
      {}, options);
  EXPECT_TRUE(reply().body.starts_with("error: ")) << "the client must not take it for the whole";
  EXPECT_EQ(thrown, make_error_code(http::ErrorCode::response_too_short).message());
}

TEST_F(HttpCompress, a_handler_without_a_response) {
  Router router;
  router.use([](Request& request, Response& response, const Handler& next) -> Task<> {
    EXPECT_TRUE(response.headers().set("Outer", "1"));
    co_await next.run(request, response);
  });
  router.use(http::compress()).get("/", [](Request&, Response& response) {
    response.set_status(Status::accepted);
    EXPECT_TRUE(response.headers().set("Inner", "1"));
  });
  serve(std::move(router).handler());
  const test::Reply got = reply();
  EXPECT_EQ(got.status, Status::accepted);
  EXPECT_TRUE(got.fields.contains("Outer") && got.fields.contains("Inner"));
}

TEST_F(HttpCompress, a_protocol_upgrade) {
  serve_compressed([](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(response.headers().set("Upgrade", "echo"));
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    EXPECT_FALSE(response.send("late"));
    if (tunnel) static_cast<void>(co_await tunnel->write("hello"));
  });
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nUpgrade: echo\r\n"
                  "Connection: upgrade\r\n\r\n")
                  .ends_with("hello"));
}

// Requests.

class HttpCodedRequests : public HttpCompress {
 public:
  void serve_decoded(http::DecodingLimits limits = {}) {
    Router router;
    router.use(http::decode_requests(limits));
    router.any("/", [](Request& request, Response& response) -> Task<> {
      EXPECT_FALSE(request.headers().contains("Content-Encoding"));
      const auto body = co_await request.body().read_all(10'000'000);
      if (body) response.send(std::to_string(body->size()) + (*body == text ? " same" : ""));
    });
    serve(std::move(router).handler());
  }
  std::string posted(std::string coding, std::string body) {
    const test::Reply got = reply("Content-Encoding: " + coding + "\r\n", "POST", std::move(body));
    if (got.status == Status::ok) return got.body;
    return std::to_string(http::code_of(got.status)) + " " +
           std::string(got.fields.get("Accept-Encoding").value_or(""));
  }
};

TEST_F(HttpCodedRequests, are_decoded) {
  serve_decoded();
  EXPECT_EQ(posted("gzip", encoded(Coding::gzip, text)), "5000 same");
  EXPECT_EQ(posted("identity", text), "5000 same");
  EXPECT_EQ(posted("deflate, gzip", encoded(Coding::gzip, encoded(Coding::deflate, text))),
            "5000 same");
}

TEST_F(HttpCodedRequests, that_cannot_be_decoded) {
  serve_decoded({.bytes_max = 2'000'000});
  EXPECT_TRUE(posted("lzma", text).starts_with("415 ") && posted("lzma", text).ends_with("gzip"));
  const std::string coded = encoded(Coding::gzip, text);
  EXPECT_EQ(posted("gzip", text), "400 ");
  EXPECT_EQ(posted("gzip", coded.substr(0, coded.size() - 1)), "400 ");
  EXPECT_EQ(posted("gzip", coded + "more"), "400 ");
  EXPECT_EQ(posted("gzip", encoded(Coding::gzip, std::string(2'000'001, '\0'))), "413 ")
      << "the ratio";
  EXPECT_EQ(posted("gzip", encoded(Coding::gzip, text_of_bytes(2'000'001))), "413 ");
  EXPECT_EQ(posted("gzip", encoded(Coding::gzip, text_of_bytes(2'000'000))), "2000000");
}

TEST_F(HttpCodedRequests, do_not_affect_the_next_request_on_the_connection) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.headers().contains("Content-Encoding")) static_cast<void>(request.body().decode());
    const auto body = co_await request.body().read_all();
    if (body) response.send(body->to_string());
  });
  const std::string coded = encoded(Coding::gzip, "coded");
  const std::string got =
      ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: " +
          std::to_string(coded.size()) + "\r\n\r\n" + coded +
          "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nplain");
  EXPECT_EQ(got, test::response_of("200 OK", "coded") +
                     test::response_of("200 OK", "plain", "Connection: close\r\n"));
}

// curl decodes what the server sends.

TEST(HttpCompressCurl, agrees) {
  if (!test::has_program("curl")) GTEST_SKIP() << "curl is not installed";
  EventLoop loop;
  Router router;
  const std::string large = text_of_bytes(1'000'000);
  router.use(http::compress());
  router.get("/small", answer(of_type("text/plain")));
  router.get("/large", answer(of_type("text/plain"), Status::ok, large));
  router.get("/stream", [&large](Request&, Response& response) -> Task<> {
    EXPECT_TRUE(response.headers().set("Content-Type", "text/plain"));
    for (std::size_t at = 0; at < large.size(); at += 100'000)
      EXPECT_TRUE(co_await response.write(std::string_view(large).substr(at, 100'000)));
  });
  auto server =
      or_throw(http::Server::listen(loop, Endpoint::loopback_v4(0), std::move(router).handler()));
  const std::string url = "http://" + server.endpoint().to_string();
  std::vector<std::string> wrong;
  std::thread client([&] {
    for (const char* const coding : {"gzip", "br", "zstd", "identity"}) {
      for (const char* const path : {"/small", "/large", "/stream"}) {
        const std::string got = test::curl(
            "--compressed -H 'Accept-Encoding: " + std::string(coding) + "' " + url + path);
        if (got != (std::string_view(path) == "/small" ? text : large))
          wrong.push_back(coding + std::string(path) + " " + got.substr(0, 100));
      }
    }
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  client.join();
  EXPECT_EQ(wrong, std::vector<std::string>{});
}

TEST(HttpCompressOptions, a_level_outside_its_range_is_an_error) {
  const auto error_of = [](const http::CompressOptions& options) {
    const auto created = http::compress(options);
    return created ? Error() : created.error();
  };
  EXPECT_FALSE(error_of({}));
  EXPECT_EQ(error_of({.gzip_level = 0}), http::ErrorCode::bad_coding_level);
  EXPECT_EQ(error_of({.brotli_quality = 12}), http::ErrorCode::bad_coding_level);
  EXPECT_EQ(error_of({.zstd_level = 20}), http::ErrorCode::bad_coding_level);
}

}  // namespace
}  // namespace tambour::compress_test
