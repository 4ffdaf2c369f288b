// Counters of requests, errors, bytes and durations, for each route.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The counters of one method and route.
struct RouteMetrics {
  /// The upper bounds of the buckets of `durations`; the last bucket has none.
  static constexpr std::array<Duration, 14> bounds = {
      std::chrono::microseconds(500),  std::chrono::milliseconds(1),
      std::chrono::microseconds(2500), std::chrono::milliseconds(5),
      std::chrono::milliseconds(10),   std::chrono::milliseconds(25),
      std::chrono::milliseconds(50),   std::chrono::milliseconds(100),
      std::chrono::milliseconds(250),  std::chrono::milliseconds(500),
      std::chrono::seconds(1),         std::chrono::milliseconds(2500),
      std::chrono::seconds(5),         std::chrono::seconds(10)};

  /// "GET"; "other" for methods that are not registered; empty if the request was rejected before
  /// its method was known.
  std::string method{};
  /// Request::route(): empty if no route matched. "(other)" for routes beyond routes_max.
  std::string route{};
  std::uint64_t requests = 0;
  /// By the first digit of the status, from 2xx on; 101 counts as 2xx.
  std::array<std::uint64_t, 4> statuses{};
  std::uint64_t failed = 0;          ///< Responses that the client has not received completely.
  std::uint64_t request_bytes = 0;   ///< Of bodies, as they were received.
  std::uint64_t response_bytes = 0;  ///< Of bodies, as they were sent.
  /// From the complete head of the request until the response was complete, in real time, including
  /// the time in which a handler computes.
  std::array<std::uint64_t, bounds.size() + 1> durations{};
  Duration duration_sum{};
};

struct MetricsOptions {
  /// The combinations of method and route that are counted separately. Further ones are counted as
  /// "(other)".
  std::size_t routes_max = 256;
};

/// Counters that any number of servers and loops add to.
///
///   http::Metrics metrics;
///   options.on_response = [&](const auto& request, const auto& response) {
///     metrics.record(request, response);
///   };
///   router.get("/metrics", [&](auto&, auto& response) {
///     response.headers().set("Content-Type", "text/plain; version=0.0.4");
///     response.send(http::format_prometheus(metrics.snapshot()));
///   });
///
/// Memory: up to 300 bytes and the names for each route and for each of at most 16 groups of
/// threads, allocated when a route is first counted; counting a known route allocates nothing.
/// Thread: any. It must exist as long as the servers.
class Metrics {
 public:
  /// Throws std::bad_alloc.
  explicit Metrics(MetricsOptions options = {});
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// For ServerOptions::on_response. Out of memory, a new route is counted as "(other)".
  void record(const Request& request, const Response& response) noexcept;

  /// The sums over all threads, ordered by route and method. Throws std::bad_alloc.
  [[nodiscard]] std::vector<RouteMetrics> snapshot() const;

 private:
  class [[gnu::visibility("hidden")]] Shard;

  std::unique_ptr<Shard[]> shards_;
};

/// The text format of Prometheus (version 0.0.4): http_requests_total,
/// http_response_failures_total, http_request_body_bytes_total, http_response_body_bytes_total, and
/// the histogram http_request_duration_seconds, with the labels `method` and `route`. Throws
/// std::bad_alloc.
[[nodiscard]] std::string format_prometheus(std::span<const RouteMetrics> metrics);

}  // namespace tambour::http

#pragma GCC visibility pop
