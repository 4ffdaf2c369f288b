// Counters by route.
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::metrics_test {
namespace {

using namespace std::chrono_literals;
using http::Metrics;
using http::Request;
using http::Response;
using http::RouteMetrics;

class HttpMetrics : public test::Serving {
 public:
  explicit HttpMetrics(std::size_t routes_max = 256) : metrics_({.routes_max = routes_max}) {
    http::Router router;
    router.get("/wait/{id}", [](Request&, Response& response) -> Task<> {
      static_cast<void>(co_await sleep_for(30ms));
      response.send("hello");
    });
    router.post("/echo", [](Request& request, Response& response) -> Task<> {
      auto body = co_await request.body().read_all();
      if (body) response.send(std::move(*body));
    });
    router.get("/throw", [](Request&, Response&) { throw 1; });
    http::ServerOptions options;
    options.on_response = [this](const Request& request, const Response& response) {
      metrics_.record(request, response);
    };
    options.on_exception = [](const Request&, const std::exception_ptr&) {};
    serve(std::move(router).handler(), std::move(options));
  }
  void request(const std::string& line, const std::string& rest = "\r\n") {
    static_cast<void>(ask(line + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + rest));
  }
  /// The counters of a route; all zero if there are none.
  RouteMetrics of(const std::string& method, const std::string& route) {
    for (const RouteMetrics& metrics : metrics_.snapshot()) {
      if (metrics.method == method && metrics.route == route) return metrics;
    }
    return {};
  }

  Metrics metrics_;
};

TEST_F(HttpMetrics, count_requests_by_route) {
  request("GET /wait/1");
  request("GET /wait/2");
  request("POST /echo", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  request("GET /throw");
  request("GET /a");
  request("GET /b");
  request("INVENTED /c");
  request("GET /d", "Bad Field: x\r\n\r\n");
  static_cast<void>(ask("\x16\x03\x01\r\n"));
  const RouteMetrics wait = of("GET", "/wait/{id}");
  EXPECT_EQ(wait.requests, 2U);
  EXPECT_EQ(wait.statuses[0], 2U);
  EXPECT_EQ(wait.response_bytes, 10U);
  EXPECT_EQ(wait.failed, 0U);
  EXPECT_GE(wait.duration_sum, 60ms);
  EXPECT_EQ(wait.durations[6], 2U);  // Up to 50 ms.
  const RouteMetrics echo = of("POST", "/echo");
  EXPECT_EQ(echo.request_bytes, 5U);
  EXPECT_EQ(echo.response_bytes, 5U);
  EXPECT_EQ(of("GET", "/throw").statuses[3], 1U);
  EXPECT_EQ(of("GET", "").statuses[2], 3U);  // 404 twice, and 400.
  EXPECT_EQ(of("other", "").statuses[2], 1U);
  EXPECT_EQ(of("", "").statuses[2], 1U);
  EXPECT_EQ(metrics_.snapshot().size(), 6U);
}

TEST_F(HttpMetrics, have_the_format_of_prometheus) {
  RouteMetrics metrics{.method = "GET", .route = "/a\"{b}"};
  metrics.requests = 3;
  metrics.statuses = {2, 0, 0, 1};
  metrics.durations[0] = 2;
  metrics.durations.back() = 1;
  metrics.duration_sum = 12'500ms;
  const std::string text = http::format_prometheus(std::vector{metrics});
  const std::string labels = "method=\"GET\",route=\"/a\\\"{b}\"";
  for (const std::string& line : {
           "# TYPE http_requests_total counter\nhttp_requests_total{" + labels +
               ",status=\"2xx\"} 2\nhttp_requests_total{" + labels + ",status=\"5xx\"} 1\n",
           "http_request_duration_seconds_bucket{" + labels + ",le=\"0.0005\"} 2\n",
           "http_request_duration_seconds_bucket{" + labels + ",le=\"10\"} 2\n",
           "http_request_duration_seconds_bucket{" + labels + ",le=\"+Inf\"} 3\n",
           "http_request_duration_seconds_sum{" + labels + "} 12.5\n",
           "http_request_duration_seconds_count{" + labels + "} 3\n",
       })
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

class FewHttpMetrics : public HttpMetrics {
 public:
  FewHttpMetrics() : HttpMetrics(1) {}
};

TEST_F(FewHttpMetrics, have_a_limit_of_routes) {
  request("GET /wait/1");
  request("GET /throw");
  request("GET /none");
  EXPECT_EQ(of("GET", "/wait/{id}").requests, 1U);
  EXPECT_EQ(of("", "(other)").requests, 2U);
  EXPECT_EQ(metrics_.snapshot().size(), 2U);
}

/// The clock of a loop does not advance while a handler computes.
TEST(HttpMetricsOfGroups, are_sums_in_real_time) {
  constexpr int connections = 8;
  Metrics metrics;
  LoopGroup group({.threads = 2});
  http::Router router;
  router.get("/compute", [](Request&, Response& response) {
    std::this_thread::sleep_for(3ms);
    response.send("x");
  });
  http::ServerOptions options;
  options.on_response = [&](const Request& request, const Response& response) {
    metrics.record(request, response);
  };
  auto server = or_throw(http::ServerGroup::listen(group, Endpoint::loopback_v4(0),
                                                   std::move(router).handler(), options));
  EventLoop loop;
  for (int i = 0; i < connections; ++i) {
    spawn(loop, [](Endpoint to) -> Task<> {
      TcpStream stream = or_throw(co_await TcpStream::connect(to));
      const Result<> written =
          co_await stream.write("GET /compute HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      EXPECT_TRUE(written);
      Buffer in;
      while ((co_await stream.read(in)).value_or(0) > 0) {
      }
    }(server.endpoint()));
  }
  loop.run();
  group.stop();
  group.join();
  const std::vector<RouteMetrics> all = metrics.snapshot();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].requests, static_cast<std::uint64_t>(connections));
  EXPECT_GE(all[0].duration_sum, connections * 3ms);
  EXPECT_EQ(all[0].durations[0] + all[0].durations[1] + all[0].durations[2], 0U);
}

}  // namespace
}  // namespace tambour::metrics_test
