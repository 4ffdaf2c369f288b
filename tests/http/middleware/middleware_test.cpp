// CORS, access logs, redirects to HTTPS.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::middleware_test {
namespace {

using namespace std::chrono_literals;
using http::AccessRecord;
using http::CorsOptions;
using http::Request;
using http::Response;
using test::response_of;

std::string request_with(const std::string& method, const std::string& fields,
                         const std::string& target = "/") {
  return method + " " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n";
}

class HttpCors : public test::Serving {
 public:
  void serve_with(CorsOptions options) {
    server_.reset();
    http::Router router;
    router.use(or_throw(http::cors(std::move(options))));
    router.get("/", [this](Request&, Response& response) {
      ++handled_;
      response.send("x");
    });
    serve(std::move(router).handler());
  }
  static Error error_of(CorsOptions options) {
    const auto created = http::cors(std::move(options));
    return created ? Error() : created.error();
  }
  /// The head of the response, without the fields that each response has.
  std::string answer(const std::string& method, const std::string& fields) {
    std::string text = ask(request_with(method, fields));
    text = text.substr(9, text.find("\r\n\r\n") - 7);
    for (const char* line : {"Connection: close\r\n", "Content-Length: 1\r\n"}) {
      if (const std::size_t at = text.find(line); at != std::string::npos)
        text.erase(at, std::string_view(line).size());
    }
    return text;
  }
  int handled_ = 0;
};

const std::string preflight = "Access-Control-Request-Method: PUT\r\n";

TEST_F(HttpCors, allows_the_origins_that_are_listed) {
  serve_with({.origins = {"https://one.example", "http://two.example:8080"},
              .exposed_fields = {"ETag", "X-Total"}});
  EXPECT_EQ(answer("GET", ""), "200 OK\r\nVary: Origin\r\n");
  EXPECT_EQ(answer("GET", "Origin: https://one.example\r\n"),
            "200 OK\r\nVary: Origin\r\nAccess-Control-Allow-Origin: https://one.example\r\n"
            "Access-Control-Expose-Headers: ETag, X-Total\r\n");
  EXPECT_NE(answer("GET", "Origin: http://two.example:8080\r\n").find("Allow-Origin: http://two"),
            std::string::npos);
  for (const char* other :
       {"https://one.example.evil", "https://one.example:443", "http://one.example",
        "https://ONE.example", "null", "https://xone.example", "*", "https://one.example/", ""})
    EXPECT_EQ(answer("GET", "Origin: " + std::string(other) + "\r\n"), "200 OK\r\nVary: Origin\r\n")
        << other;
  const std::string twice = "Origin: https://one.example\r\n";
  EXPECT_EQ(answer("GET", twice + twice), "200 OK\r\nVary: Origin\r\n");
  EXPECT_EQ(handled_, 13);
}

TEST_F(HttpCors, answers_preflight_requests) {
  serve_with({.origins = {"https://one.example"},
              .methods = {http::Method::get, http::Method::put},
              .fields = {"Content-Type", "X-Token"},
              .credentials = true,
              .max_age = 10min});
  EXPECT_EQ(
      answer("OPTIONS", "Origin: https://one.example\r\n" + preflight),
      "204 No Content\r\nVary: Origin\r\nAccess-Control-Allow-Origin: https://one.example\r\n"
      "Access-Control-Allow-Credentials: true\r\nAccess-Control-Allow-Methods: GET, PUT\r\n"
      "Access-Control-Allow-Headers: Content-Type, X-Token\r\nAccess-Control-Max-Age: 600\r\n");
  EXPECT_TRUE(answer("OPTIONS", "Origin: https://two.example\r\n" + preflight)
                  .starts_with("403 Forbidden\r\nVary: Origin\r\nContent-Length: 0\r\n"));
  // These are not preflight requests.
  EXPECT_TRUE(answer("OPTIONS", preflight).starts_with("204 No Content\r\nVary: Origin\r\nAllow:"));
  EXPECT_NE(answer("OPTIONS", "Origin: https://one.example\r\n").find("\r\nAllow: "),
            std::string::npos);
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpCors, any_origin_is_allowed_only_without_credentials) {
  serve_with({.origins = {"*"}});
  EXPECT_EQ(answer("GET", "Origin: https://one.example\r\n"),
            "200 OK\r\nAccess-Control-Allow-Origin: *\r\n");
  EXPECT_EQ(error_of({.origins = {"*"}, .credentials = true}),
            http::ErrorCode::credentials_for_any_origin);
  EXPECT_EQ(error_of({.origins = {"https://one.example/"}}), http::ErrorCode::bad_origin);
  EXPECT_EQ(error_of({.origins = {"one.example"}}), http::ErrorCode::bad_origin);
  EXPECT_EQ(error_of({.fields = {"a b"}}), http::ErrorCode::bad_field_name);
}

class HttpAccessLog : public test::Serving {
 public:
  http::ServerOptions logging() {
    http::ServerOptions options;
    options.on_response = http::access_log([this](const AccessRecord& record) {
      lines_.push_back(http::format_combined(record));
      failed_.push_back(record.failed);
      to_head_.push_back(record.time_to_head);
      total_.push_back(record.time_total);
    });
    return options;
  }
  /// The part of a line after the time.
  std::string line(std::size_t i) { return lines_.at(i).substr(lines_.at(i).find(']') + 2); }

  std::vector<std::string> lines_;
  std::vector<bool> failed_;
  std::vector<Duration> to_head_;
  std::vector<Duration> total_;
};

TEST_F(HttpAccessLog, has_a_line_for_each_response) {
  serve(
      [](Request&, Response& response) -> Task<> {
        EXPECT_TRUE(co_await sleep_for(2s));
        EXPECT_TRUE(co_await response.write("hello"));
        EXPECT_TRUE(co_await sleep_for(3s));
      },
      logging());
  ask(request_with("GET", "User-Agent: curl/8\r\nReferer: http://b/\r\n", "/a?b=c"));
  ask(request_with("HEAD", "User-Agent: a\"b\\c\x80\xFF\r\n", "/x"));
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_EQ(line(0), R"("GET /a?b=c HTTP/1.1" 200 5 "http://b/" "curl/8")");
  EXPECT_EQ(line(1), R"("HEAD /x HTTP/1.1" 200 - "-" "a\"b\\c\x80\xff")");
  EXPECT_FALSE(lines_[0].starts_with("-")) << lines_[0];
  EXPECT_GE(to_head_[0], 2s);
  EXPECT_LT(to_head_[0], 3s);
  EXPECT_GE(total_[0], 5s);
  EXPECT_LT(total_[0], 6s);
  EXPECT_FALSE(failed_[0]);
}

/// The clock of a loop does not advance while a handler computes.
TEST(HttpAccessLogDurations, contain_the_time_in_which_a_handler_computes) {
  const auto compute = [] {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < 30ms) {
    }
  };
  EventLoop loop;
  std::vector<AccessRecord> records;
  http::ServerOptions options;
  options.on_response = http::access_log([&](const AccessRecord& record) {
    records.push_back(record);
    if (records.size() == 3) loop.stop();
  });
  auto server = or_throw(http::Server::listen(
      loop, Endpoint::loopback_v4(0),
      [&](Request& request, Response& response) {
        if (request.path() == "/before") compute();
        response.send("x");
        if (request.path() == "/after") compute();
      },
      options));
  spawn(loop, [&]() -> Task<> {
    TcpStream stream = or_throw(co_await TcpStream::connect(server.endpoint()));
    EXPECT_TRUE(
        co_await stream.write("GET /before HTTP/1.1\r\nHost: a\r\n\r\n"
                              "GET /fast HTTP/1.1\r\nHost: a\r\n\r\n"
                              "GET /after HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await sleep_for(1min));
    loop.stop();
  });
  loop.run();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_GE(records[0].time_to_head, 30ms);
  EXPECT_GE(records[0].time_total, records[0].time_to_head);
  EXPECT_GE(records[2].time_total, records[2].time_to_head + 30ms);
  // The time of an earlier handler is not that of this request.
  EXPECT_GE(records[1].received_at, records[0].received_at + 30ms);
}

TEST_F(HttpAccessLog, contains_rejected_requests) {
  serve([](Request&, Response& response) { response.send("x"); }, logging());
  ask("GET /first HTTP/1.1\r\nHost: a\r\n\r\nPUT /second HTTP/1.0\r\nBad Field: x\r\n\r\n");
  ask("\x16\x03\x01");
  ask("GET /third HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nContent-Length: x\r\n\r\n");
  ask_in_pieces({"GET /slow HTTP/1.1\r\nHo"});
  ASSERT_EQ(lines_.size(), 5U);
  EXPECT_EQ(line(0), R"("GET /first HTTP/1.1" 200 1 "-" "-")");
  EXPECT_TRUE(line(1).starts_with(R"("PUT /second HTTP/1.0" 400 )")) << line(1);
  EXPECT_TRUE(line(2).starts_with(R"("-" 400 )")) << line(2);
  EXPECT_TRUE(line(3).starts_with(R"("GET /third HTTP/1.1" 400 )")) << line(3);
  EXPECT_TRUE(line(4).starts_with(R"("GET /slow HTTP/1.1" 408 )")) << line(4);
}

TEST_F(HttpAccessLog, tells_which_responses_have_failed) {
  simulation_.options().stream_buffer_bytes = 10'000;
  auto options = logging();
  options.listen.on_error = [](const std::exception_ptr&) {};
  serve(
      [](Request& request, Response& response) -> Task<> {
        const bool throws = request.path() == "/throw";
        const std::string body(throws ? 1 : 1'000'000, 'x');
        const Result<> written = co_await response.write(std::string_view(body));
        if (throws) throw std::runtime_error("x");
        EXPECT_FALSE(written);
      },
      options);
  ask(request_with("GET", "", "/throw"));
  run([](HttpAccessLog& test) -> Task<> {
    TcpStream stream = co_await test.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await sleep_for(1s));
    stream.close();
    static_cast<void>(co_await sleep_for(1s));
  }(*this));
  ASSERT_EQ(failed_.size(), 2U);
  EXPECT_TRUE(failed_[0]);
  EXPECT_TRUE(failed_[1]);
}

TEST(HttpAccessRecord, has_the_common_format) {
  AccessRecord record;
  record.peer = or_throw(Endpoint::parse("[2001:db8::1]:5000"));
  record.received_at = std::chrono::sys_days(std::chrono::year(1994) / 11 / 6) + 8h + 49min + 37s;
  record.method = "GET";
  record.target = "/\n\"";
  record.body_bytes = 12;
  EXPECT_EQ(http::format_common(record),
            "2001:db8::1 - - [06/Nov/1994:08:49:37 +0000] \"GET /\\x0a\\\" HTTP/1.1\" 200 12");
  record.peer = or_throw(Endpoint::unix_name("/a b"));
  record.version = http::Version::http_2;
  EXPECT_TRUE(http::format_common(record).starts_with("- - - [06/Nov/1994"));
}

class HttpsRedirect : public test::Serving {
 public:
  std::string location(const std::string& request) {
    const std::string text = ask(request);
    const std::size_t at = text.find("Location: ");
    if (at == std::string::npos) return text.substr(9, 3);
    return text.substr(9, 4) + text.substr(at + 10, text.find("\r\n", at) - at - 10);
  }
};

TEST_F(HttpsRedirect, keeps_host_and_target) {
  serve(http::redirect_to_https());
  EXPECT_EQ(location(request_with("GET", "", "/a?b=%0d")), "308 https://a/a?b=%0d");
  EXPECT_EQ(location("GET / HTTP/1.0\r\nHost: b.example:8080\r\n\r\n"), "308 https://b.example/");
  EXPECT_EQ(location("GET / HTTP/1.0\r\nHost: [::1]:80\r\n\r\n"), "308 https://[::1]/");
  EXPECT_EQ(location("GET http://c/d HTTP/1.0\r\n\r\n"), "308 https://c/d");
  EXPECT_EQ(location("OPTIONS * HTTP/1.0\r\nHost: a\r\n\r\n"), "308 https://a/");
  EXPECT_EQ(location("GET / HTTP/1.0\r\n\r\n"), "400");
  server_.reset();
  serve(http::redirect_to_https(
      {.port = 8443, .status = http::Status::moved_permanently, .host = "www.example.org"}));
  EXPECT_EQ(location(request_with("GET", "")), "301 https://www.example.org:8443/");
}

TEST_F(HttpsRedirect, no_transport_security_without_tls) {
  http::Router router;
  router.use(http::strict_transport_security());
  router.get("/", [](Request&, Response& response) { response.send("x"); });
  serve(std::move(router).handler());
  EXPECT_EQ(ask(request_with("GET", "")), response_of("200 OK", "x", "Connection: close\r\n"));
}

}  // namespace
}  // namespace tambour::middleware_test
