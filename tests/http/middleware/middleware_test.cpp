// CORS, access logs, redirects to HTTPS, traces.
#include <chrono>
#include <optional>
#include <stdexcept>
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

// The examples of the specification, and what it forbids.
TEST(TraceContext, is_parsed) {
  const std::string ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
  const auto context = http::TraceContext::parse("00-" + ids + "-01", "congo=t61rcWkgMzE");
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(http::to_hex(context->trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(http::to_hex(context->span_id), "00f067aa0ba902b7");
  EXPECT_EQ(context->state, "congo=t61rcWkgMzE");
  EXPECT_EQ(context->traceparent(), "00-" + ids + "-01");
  EXPECT_FALSE(http::TraceContext::parse("00-" + ids + "-00")->is_sampled);
  EXPECT_TRUE(http::TraceContext::parse("00-" + ids + "-03")->is_sampled);
  EXPECT_TRUE(http::TraceContext::parse("cc-" + ids + "-01"));
  EXPECT_TRUE(http::TraceContext::parse("cc-" + ids + "-01-what-the-future-will-be-like"));
  for (const std::string& invalid :
       {"00-" + ids, "00-" + ids + "-01-more", "00-" + ids + "-01.", "cc-" + ids + "-01.x",
        "ff-" + ids + "-01", "0-" + ids + "-01", "00-" + ids + "-1", "00-" + ids + "-0G",
        "00_" + ids + "-01", std::string(), std::string(55, '-'),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01")})
    EXPECT_FALSE(http::TraceContext::parse(invalid)) << invalid;
  EXPECT_EQ(http::TraceContext::parse("00-" + ids + "-01", std::string(513, 'a'))->state, "");
  EXPECT_EQ(http::TraceContext::parse("00-" + ids + "-01", "a=\n")->state, "");
}

TEST(TraceContext, children_belong_to_the_trace) {
  EventLoop loop;
  const auto first = http::TraceContext::create(loop);
  const auto second = first.child(loop);
  EXPECT_EQ(second.trace_id, first.trace_id);
  EXPECT_NE(second.span_id, first.span_id);
  EXPECT_NE(http::TraceContext::create(loop).trace_id, first.trace_id);
  EXPECT_TRUE(http::TraceContext::parse(first.traceparent()));
}

class HttpTracing : public test::Serving {
 public:
  struct Ended {
    http::TraceContext context;
    http::TraceContext::SpanId parent;
    std::string method;
    std::string name;
    std::optional<http::Status> status;
    bool has_thrown;
  };

  void serve_with(http::TracingOptions options) {
    server_.reset();
    options.on_span = [this](const http::Span& span) {
      spans_.push_back({span.context, span.parent, std::string(span.method), std::string(span.name),
                        span.status, span.has_thrown});
      EXPECT_GE(span.duration, Duration::zero());
      EXPECT_GT(span.began_at.time_since_epoch(), Duration::zero());
    };
    http::Router router;
    router.use(http::trace_requests(std::move(options)));
    router.get("/now/{secret}", [this](Request& request, Response& response) {
      seen_ = http::trace_context_of(request);
      response.send("x");
    });
    router.get("/later", [](Request&, Response& response) -> Task<> {
      co_await sleep_for(1ms);
      response.send("x");
    });
    router.get("/throws", [](Request&, Response&) -> Task<> {
      co_await sleep_for(0s);
      throw std::runtime_error("thrown");
    });
    serve(std::move(router).handler());
  }

  std::vector<Ended> spans_;
  std::optional<http::TraceContext> seen_;
};

TEST_F(HttpTracing, a_request_is_a_child_of_the_span_of_its_client) {
  const std::string sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  serve_with({});
  ask(request_with("GET", "traceparent: " + sent + "\r\ntracestate: a=b\r\n", "/now/s3cret?q=1"));
  ASSERT_EQ(spans_.size(), 1U);
  EXPECT_EQ(http::to_hex(spans_[0].context.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(http::to_hex(spans_[0].parent), "00f067aa0ba902b7");
  EXPECT_NE(http::to_hex(spans_[0].context.span_id), "00f067aa0ba902b7");
  EXPECT_EQ(spans_[0].context.state, "a=b");
  EXPECT_EQ(spans_[0].method, "GET");
  EXPECT_EQ(spans_[0].name, "/now/{secret}") << "the route, and not the target";
  EXPECT_EQ(spans_[0].status, http::Status::ok);
  ASSERT_TRUE(seen_);
  EXPECT_EQ(seen_->span_id, spans_[0].context.span_id) << "for requests that the handler sends";
}

TEST_F(HttpTracing, new_traces_and_tasks) {
  serve_with({});
  ask(request_with("GET", "", "/later"));
  ask(request_with("GET", "traceparent: 00-invalid\r\n", "/later"));
  ask(request_with("GET", "", "/throws"));
  ASSERT_EQ(spans_.size(), 3U);
  EXPECT_NE(spans_[0].context.trace_id, spans_[1].context.trace_id);
  EXPECT_EQ(spans_[0].parent, http::TraceContext::SpanId{});
  EXPECT_FALSE(spans_[1].has_thrown);
  EXPECT_TRUE(spans_[2].has_thrown);
}

TEST_F(HttpTracing, sampling) {
  const std::string ids = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
  serve_with({.sampled = 0.0});
  ask(request_with("GET", "", "/later"));
  ask(request_with("GET", "traceparent: " + ids + "-00\r\n", "/later"));
  EXPECT_EQ(spans_.size(), 0U);
  ask(request_with("GET", "traceparent: " + ids + "-01\r\n", "/later"));
  EXPECT_EQ(spans_.size(), 1U);
  // A peer that is not trusted cannot begin a trace.
  serve_with({.sampled = 0.0, .trusted = {*IpNetwork::parse("192.0.2.0/24")}});
  ask(request_with("GET", "traceparent: " + ids + "-01\r\n", "/later"));
  EXPECT_EQ(spans_.size(), 1U);
}

TEST_F(HttpTracing, a_client_sends_the_context) {
  serve_with({});
  std::vector<std::string> sent;
  const http::SpanHook on_span = [&sent](const http::Span& span) {
    EXPECT_EQ(span.kind, http::Span::Kind::client);
    sent.push_back(span.context.traceparent() + ' ' + std::string(span.name) + ' ' +
                   (span.status ? "answered" : "failed"));
  };
  const auto parent = http::TraceContext::create(loop_);
  run([&]() -> Task<> {
    http::Client client(loop_);
    http::ClientRequest request("http://" + server_->endpoint().to_string() + "/later");
    const auto response = co_await http::send_traced(client, std::move(request), parent, on_span);
    EXPECT_TRUE(response);
    http::ClientRequest refused("http://127.0.0.1:1/");
    const auto failed = co_await http::send_traced(client, std::move(refused), parent, on_span);
    EXPECT_FALSE(failed);
  }());
  ASSERT_EQ(sent.size(), 2U);
  ASSERT_EQ(spans_.size(), 1U);
  EXPECT_EQ(spans_[0].context.trace_id, parent.trace_id);
  EXPECT_TRUE(sent[0].starts_with("00-" + http::to_hex(parent.trace_id) + '-' +
                                  http::to_hex(spans_[0].parent)));
  EXPECT_TRUE(sent[0].ends_with(" answered")) << sent[0];
  EXPECT_TRUE(sent[1].ends_with("failed")) << sent[1];
}

}  // namespace
}  // namespace tambour::middleware_test
