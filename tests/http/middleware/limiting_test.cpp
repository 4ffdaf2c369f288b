// Rate limits, time limits, limits of bodies, and recovery from exceptions.
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "bytes/siphash.h"
#include "http/support/serving.h"

namespace tambour::limiting_test {
namespace {

using namespace std::chrono_literals;
using http::RateLimitDecision;
using http::RateLimiter;
using http::Request;
using http::Response;

std::string request_to(const std::string& target, const std::string& fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n";
}

/// The vectors of the reference implementation: keys 00 to 0f, texts 00, 00 01, ...
TEST(SipHash, agrees_with_the_reference) {
  const tambour::detail::bytes::SipKey key{.first = 0x0706050403020100U,
                                           .second = 0x0F0E0D0C0B0A0908U};
  std::string text;
  EXPECT_EQ(tambour::detail::bytes::siphash(key, text), 0x726FDB47DD0E0E31U);
  text += '\0';
  EXPECT_EQ(tambour::detail::bytes::siphash(key, text), 0x74F839C593DC67FDU);
  for (char c = 1; c < 15; ++c) text += c;
  EXPECT_EQ(tambour::detail::bytes::siphash(key, text), 0xA129CA6149BE45E5U);
}

TEST(RateLimiter, has_a_bucket_for_each_client) {
  auto limiter = or_throw(RateLimiter::create({.requests = 60, .period = 1min, .burst = 3}));
  TimePoint now(1h);
  for (std::uint64_t left : {2U, 1U, 0U}) {
    const RateLimitDecision decision = limiter.take("a", now);
    EXPECT_TRUE(decision.is_allowed);
    EXPECT_EQ(decision.requests_left, left);
    EXPECT_EQ(decision.reset_after, (3 - left) * 1s);
  }
  const RateLimitDecision refused = limiter.take("a", now + 400ms);
  EXPECT_FALSE(refused.is_allowed);
  EXPECT_EQ(refused.retry_after, 600ms);
  EXPECT_TRUE(limiter.take("b", now).is_allowed);
  EXPECT_FALSE(limiter.take("a", now + 999ms).is_allowed);
  EXPECT_TRUE(limiter.take("a", now + 1s).is_allowed);
  EXPECT_FALSE(limiter.take("a", now + 1s).is_allowed);
  // A bucket does not become fuller than full.
  now += 24h;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.take("a", now).is_allowed);
  EXPECT_FALSE(limiter.take("a", now).is_allowed);
  EXPECT_EQ(limiter.stats().allowed, 8U);
  EXPECT_EQ(limiter.stats().refused, 4U);
  EXPECT_EQ(limiter.stats().evicted, 0U);
}

TEST(RateLimiter, allows_the_rate_in_the_long_run) {
  auto limiter = or_throw(RateLimiter::create({.requests = 7, .period = 1s}));
  int allowed = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (limiter.take("a", TimePoint(1h + i * 1ms)).is_allowed) ++allowed;
  }
  EXPECT_GE(allowed, 700);
  EXPECT_LE(allowed, 708);
}

TEST(RateLimiter, remembers_a_bounded_number_of_clients) {
  auto limiter = or_throw(RateLimiter::create({.requests = 1, .period = 1h, .clients_max = 64}));
  const TimePoint now(1h);
  for (int i = 0; i < 10'000; ++i) limiter.take(std::to_string(i), now);
  EXPECT_GE(limiter.stats().evicted, 10'000U - 64U - limiter.stats().refused);
  // A client that comes again at once is still known, whatever came before.
  limiter.take("last", now);
  EXPECT_FALSE(limiter.take("last", now).is_allowed);
}

TEST(RateLimiter, checks_its_options) {
  const auto is_refused = [](http::RateLimitOptions options) {
    const auto created = RateLimiter::create(std::move(options));
    return !created && created.error() == system_error(EINVAL);
  };
  EXPECT_TRUE(is_refused({.requests = 0}));
  EXPECT_TRUE(is_refused({.requests = 2'000'000'000}));
  EXPECT_TRUE(is_refused({.period = 0s}));
  EXPECT_TRUE(is_refused({.period = Duration::max()}));
  EXPECT_TRUE(is_refused({.requests = 1, .period = 24h, .burst = 1'000'000}));
  EXPECT_TRUE(is_refused({.clients_max = 0}));
  EXPECT_TRUE(is_refused({.policy = "a\"b"}));
  EXPECT_FALSE(is_refused({}));
}

TEST(RateLimiter, is_shared_by_threads) {
  auto limiter = or_throw(RateLimiter::create({.requests = 1000, .period = 24h}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([limiter]() mutable {
      for (int n = 0; n < 1000; ++n) limiter.take("a", TimePoint(1h));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limiter.stats().allowed, 1000U);
  EXPECT_EQ(limiter.stats().refused, 3000U);
}

Task<> wait_an_hour() { static_cast<void>(co_await sleep_for(1h)); }

class HttpLimiting : public test::Serving {
 public:
  void serve_with(const std::vector<http::Middleware>& middleware, http::Handler handler,
                  http::ServerOptions options = {}) {
    serve(http::with_middleware(middleware, std::move(handler)), std::move(options));
  }
};

TEST_F(HttpLimiting, answers_too_many_requests_with_429) {
  const auto limiter = or_throw(RateLimiter::create({.requests = 2, .period = 10s}));
  serve_with({limiter.middleware()}, [](Request&, Response& response) { response.send("x"); });
  const std::string policy = "RateLimit-Policy: \"default\";q=2;w=10\r\n";
  const std::string close = "Connection: close\r\n";
  EXPECT_EQ(ask(request_to("/")), test::response_of("200 OK", "x", close)
                                      .insert(17, policy + "RateLimit: \"default\";r=1;t=5\r\n"));
  const std::string both = ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n" + request_to("/"));
  EXPECT_NE(both.find("RateLimit: \"default\";r=0;t=10\r\n"), std::string::npos) << both;
  const std::string refused = both.substr(both.find("HTTP/1.1 429"));
  EXPECT_EQ(refused,
            test::response_of("429 Too Many Requests", "429 Too Many Requests\n", close)
                .insert(32, policy + "RateLimit: \"default\";r=0;t=10\r\nRetry-After: 5\r\n"
                                     "Content-Type: text/plain\r\n"));
  EXPECT_EQ(limiter.stats().refused, 1U);
}

TEST_F(HttpLimiting, may_depend_on_a_key) {
  const auto limiter = or_throw(
      RateLimiter::create({.requests = 1,
                           .key =
                               [](const Request& request) {
                                 return std::string(request.headers().get("X-Key").value_or(""));
                               },
                           .policy = ""}));
  serve_with({limiter.middleware()}, [](Request&, Response& response) { response.send("x"); });
  EXPECT_EQ(ask(request_to("/", "X-Key: a\r\n")),
            test::response_of("200 OK", "x", "Connection: close\r\n"));
  EXPECT_EQ(ask(request_to("/", "X-Key: b\r\n")).substr(9, 3), "200");
  EXPECT_EQ(ask(request_to("/", "X-Key: a\r\n")).substr(9, 3), "429");
}

TEST_F(HttpLimiting, a_handler_that_takes_too_long_is_cancelled) {
  bool is_cancelled = false;
  serve_with({or_throw(http::time_limit(5s))}, [&](Request& request, Response& response) -> Task<> {
    if (request.path() == "/fast") co_return static_cast<void>(response.send("fast"));
    const Result<> waited = co_await sleep_for(1h);
    is_cancelled = waited.error() == system_error(ECANCELED);
    // The client has its answer already.
    EXPECT_EQ(response.send("late").error(), http::ErrorCode::response_begun);
  });
  const std::string both = ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n" + request_to("/fast"));
  EXPECT_TRUE(both.starts_with("HTTP/1.1 503 ")) << both;
  EXPECT_NE(both.find("503 Service Unavailable: the time limit has passed\n"), std::string::npos);
  EXPECT_TRUE(both.ends_with("\r\n\r\nfast")) << both;
  EXPECT_TRUE(is_cancelled);
}

TEST_F(HttpLimiting, a_handler_that_does_not_stop_delays_only_its_connection) {
  serve_with({or_throw(http::time_limit(1s))}, [](Request& request, Response&) -> Task<> {
    TaskScope scope(request.connection().loop());  // Not asked to stop.
    scope.spawn(wait_an_hour());
    co_await scope.join();
  });
  run([](HttpLimiting& test) -> Task<> {
    TcpStream stream = co_await test.open();
    const Result<> written = co_await stream.write(request_to("/"));
    EXPECT_TRUE(written);
    Buffer in;
    const bool has_answer = co_await read_until(stream, in, "has passed\n");
    EXPECT_TRUE(has_answer);
  }(*this));
}

TEST_F(HttpLimiting, a_response_that_has_begun_is_cut) {
  serve_with({or_throw(http::time_limit(5s))}, [](Request&, Response& response) -> Task<> {
    const Result<> written = co_await response.write("part");
    EXPECT_TRUE(written);
    static_cast<void>(co_await sleep_for(1h));
  });
  const std::string answer = ask(request_to("/"));
  EXPECT_NE(answer.find("part"), std::string::npos) << answer;
  EXPECT_NE(answer.find("error: "), std::string::npos) << answer;
}

TEST_F(HttpLimiting, exceptions_pass_through_a_time_limit) {
  int errors = 0;
  http::ServerOptions options;
  options.listen.on_error = [&](const std::exception_ptr&) { ++errors; };
  serve_with(
      {or_throw(http::time_limit(5s))},
      [](Request& request, Response&) -> Task<> {
        if (request.path() == "/later") static_cast<void>(co_await sleep_for(1s));
        throw std::runtime_error("x");
      },
      options);
  EXPECT_EQ(ask(request_to("/")).substr(9, 3), "500");
  EXPECT_EQ(ask(request_to("/later")).substr(9, 3), "500");
  EXPECT_EQ(errors, 2);
  EXPECT_EQ(http::time_limit(0s).error(), system_error(EINVAL));
}

TEST_F(HttpLimiting, bodies_have_limits_by_route) {
  http::ServerOptions options;
  options.limits.body_bytes_max = 100;
  http::Router router;
  const http::Handler read = [](Request& request, Response& response) -> Task<> {
    const auto body = co_await request.body().read_text();
    if (body) response.send(std::to_string(body->size()));
  };
  router.post("/", read);
  router.post("/small", http::with_middleware({http::body_limit(10)}, read));
  router.post("/large", http::with_middleware({http::body_limit(1000)}, read));
  serve(std::move(router).handler(), options);
  const auto post = [this](const std::string& target, std::size_t size, bool is_chunked) {
    const std::string body(size, 'x');
    const std::string framed =
        is_chunked ? "Transfer-Encoding: chunked\r\n\r\n" + std::string(size > 99 ? "c8" : "b") +
                         "\r\n" + body + "\r\n0\r\n\r\n"
                   : "Content-Length: " + std::to_string(size) + "\r\n\r\n" + body;
    return ask("POST " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + framed)
        .substr(9, 3);
  };
  EXPECT_EQ(post("/small", 10, false), "200");
  EXPECT_EQ(post("/small", 11, false), "413");
  EXPECT_EQ(post("/small", 11, true), "413");
  EXPECT_EQ(post("/", 11, true), "200");
  EXPECT_EQ(post("/", 200, false), "413");
  EXPECT_EQ(post("/large", 200, false), "200");
  EXPECT_EQ(post("/large", 200, true), "200");
}

class NotFound : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

TEST_F(HttpLimiting, exceptions_are_answered_inside_of_middleware) {
  std::vector<std::string> seen;
  http::RecoverOptions recovery;
  recovery.on_exception = [&](const Request& request, const std::exception_ptr&) {
    seen.push_back("exception of " + std::string(request.path()));
  };
  recovery.answer = [](const Request&, Response& response, const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const NotFound& missing) {
      response.send_error(http::Status::not_found, missing.what());
    } catch (...) {  // The default answer.
    }
  };
  int errors = 0;
  http::ServerOptions options;
  options.listen.on_error = [&](const std::exception_ptr&) { ++errors; };
  const auto outer = [&](Request& request, Response& response,
                         const http::Handler& next) -> Task<> {
    response.headers().set("X-Outer", "1");
    co_await next.run(request, response);
    seen.push_back(std::to_string(code_of(response.status())));
  };
  serve_with(
      {outer, http::recover(recovery)},
      [](Request& request, Response& response) -> Task<> {
        response.headers().set("X-Inner", "1");
        if (request.path() == "/missing") throw NotFound("no such thing");
        if (request.path() == "/part") {
          const Result<> written = co_await response.write("part");
          EXPECT_TRUE(written);
        }
        if (request.path() == "/memory") throw std::bad_alloc();
        static_cast<void>(co_await sleep_for(1s));
        throw std::logic_error("x");
      },
      options);
  const std::string answer =
      ask("GET /missing HTTP/1.1\r\nHost: a\r\n\r\nGET /memory HTTP/1.1\r\nHost: a\r\n\r\n" +
          request_to("/later"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 Not Found\r\nX-Outer: 1\r\nContent-Type")) << answer;
  EXPECT_NE(answer.find("404 Not Found: no such thing\n"), std::string::npos);
  EXPECT_EQ(answer.find("X-Inner"), std::string::npos);
  EXPECT_EQ(seen, (std::vector<std::string>{"exception of /missing", "404", "exception of /memory",
                                            "500", "exception of /later", "500"}));
  EXPECT_EQ(errors, 0);
  const std::string part = ask(request_to("/part"));
  EXPECT_NE(part.find("error: "), std::string::npos) << part;
  EXPECT_EQ(errors, 1);
}

}  // namespace
}  // namespace tambour::limiting_test
