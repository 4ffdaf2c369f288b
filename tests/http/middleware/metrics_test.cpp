// Counters by route.
#include <chrono>
#include <limits>
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

class HttpMetrics : public test::Serving {
 public:
  explicit HttpMetrics(std::size_t routes_max = 256)
      : metrics_(registry_, {.routes_max = routes_max}) {
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
    router.get("/metrics", http::metrics_handler(registry_));
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
  /// The value of a sample; -1 if there is none.
  double value(const std::string& sample) const {
    const std::string text = "\n" + metrics::format_metrics(registry_);
    const std::size_t found = text.find("\n" + sample + " ");
    return found == std::string::npos ? -1 : std::stod(text.substr(found + sample.size() + 2));
  }
  static std::string labels(const std::string& method, const std::string& route) {
    return "method=\"" + method + "\",route=\"" + route + "\"";
  }
  double requests(const std::string& method, const std::string& route,
                  const std::string& status) const {
    return value("http_requests_total{" + labels(method, route) + ",status=\"" + status + "\"}");
  }
  double of(const std::string& name, const std::string& method, const std::string& route) const {
    return value(name + "{" + labels(method, route) + "}");
  }

  metrics::Registry registry_;
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
  EXPECT_EQ(requests("GET", "/wait/{id}", "2xx"), 2);
  EXPECT_EQ(requests("GET", "/wait/{id}", "5xx"), 0);
  EXPECT_EQ(of("http_response_body_bytes_total", "GET", "/wait/{id}"), 10);
  EXPECT_EQ(of("http_response_failures_total", "GET", "/wait/{id}"), 0);
  EXPECT_GE(of("http_request_duration_seconds_sum", "GET", "/wait/{id}"), 0.06);
  EXPECT_EQ(of("http_request_duration_seconds_count", "GET", "/wait/{id}"), 2);
  EXPECT_EQ(value("http_request_duration_seconds_bucket{" + labels("GET", "/wait/{id}") +
                  ",le=\"0.025\"}"),
            0);
  EXPECT_EQ(of("http_request_body_bytes_total", "POST", "/echo"), 5);
  EXPECT_EQ(of("http_response_body_bytes_total", "POST", "/echo"), 5);
  EXPECT_EQ(requests("GET", "/throw", "5xx"), 1);
  EXPECT_EQ(requests("GET", "", "4xx"), 3);  // 404 twice, and 400.
  EXPECT_EQ(requests("other", "", "4xx"), 1);
  EXPECT_EQ(requests("", "", "4xx"), 1);
  EXPECT_EQ(requests("INVENTED", "", "4xx"), -1);
}

class FewHttpMetrics : public HttpMetrics {
 public:
  FewHttpMetrics() : HttpMetrics(1) {}
};

TEST_F(FewHttpMetrics, have_a_limit_of_routes) {
  request("GET /wait/1");
  request("GET /throw");
  request("GET /none");
  EXPECT_EQ(requests("GET", "/wait/{id}", "2xx"), 1);
  EXPECT_EQ(requests("", "(other)", "4xx"), 1);
  EXPECT_EQ(requests("", "(other)", "5xx"), 1);
  EXPECT_EQ(requests("GET", "/throw", "5xx"), -1);
}

class UnlimitedHttpMetrics : public HttpMetrics {
 public:
  UnlimitedHttpMetrics() : HttpMetrics(std::numeric_limits<std::size_t>::max()) {}
};

TEST_F(UnlimitedHttpMetrics, count_every_route) {
  request("GET /wait/1");
  request("GET /throw");
  EXPECT_EQ(requests("GET", "/wait/{id}", "2xx"), 1);
  EXPECT_EQ(requests("GET", "/throw", "5xx"), 1);
  EXPECT_EQ(of("http_request_duration_seconds_count", "GET", "/throw"), 1);
}

TEST_F(HttpMetrics, are_sent_in_the_format_that_the_client_prefers) {
  const auto many = registry_.counters("many_total", "", {"n"}, {.series_max = 1000});
  for (int i = 0; i < 1000; ++i) many.with({std::to_string(i)}).add();
  const auto get = [this](const std::string& accept) {
    return ask("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + accept + "\r\n");
  };
  const std::string text = get("");
  EXPECT_NE(text.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(text.find("many_total{n=\"0\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("many_total{n=\"999\"} 1\n"), std::string::npos);
  // What Prometheus 2.42 sends.
  const std::string open_metrics =
      get("Accept: application/openmetrics-text;version=1.0.0,"
          "application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
          "*/*;q=0.1\r\n");
  EXPECT_NE(open_metrics.find("Content-Type: application/openmetrics-text; version=1.0.0"),
            std::string::npos);
  EXPECT_NE(open_metrics.find("# EOF\n"), std::string::npos);
  EXPECT_NE(get("Accept: application/openmetrics-text;q=0.1, text/plain\r\n").find("text/plain"),
            std::string::npos);
}

/// The clock of a loop does not advance while a handler computes.
TEST(HttpMetricsOfGroups, are_sums_in_real_time) {
  constexpr int connections = 8;
  metrics::Registry registry;
  Metrics metrics(registry);
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
  metrics::Histogram durations =
      registry
          .histograms("http_request_duration_seconds",
                      "Time from the head of a request to the end of its response.",
                      {"method", "route"})
          .with({"GET", "/compute"});
  EXPECT_GE(durations.sum(), connections * 0.003);
  EXPECT_EQ(durations.count(0) + durations.count(1) + durations.count(2), 0U);
  std::uint64_t others = 0;
  for (std::size_t i = 3; i <= durations.bounds().size(); ++i) others += durations.count(i);
  EXPECT_EQ(others, static_cast<std::uint64_t>(connections));
}

}  // namespace
}  // namespace tambour::metrics_test
