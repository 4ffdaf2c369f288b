// Counters of requests, errors, bytes and durations for each route, and a handler for /metrics.
#pragma once

#include <cstddef>

#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/handler.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/metrics/registry.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The limits of http::Metrics.
struct MetricsOptions {
  /// The combinations of method and route that are counted separately. Further ones are counted as
  /// "(other)".
  std::size_t routes_max = 256;
};

/// Metrics of requests that any number of servers and loops add to.
///
///   metrics::Registry registry;
///   http::Metrics metrics(registry);
///   options.on_response = [&](const auto& request, const auto& response) {
///     metrics.record(request, response);
///   };
///   router.get("/metrics", http::metrics_handler(registry));
///
/// | metric | labels |
/// |---|---|
/// | http_requests_total | method, route, status: "2xx" to "5xx"; 101 counts as 2xx |
/// | http_response_failures_total: responses that the client did not receive completely | method,
///   route |
/// | http_request_body_bytes_total, http_response_body_bytes_total, as they were received and
///   sent | method, route |
/// | http_request_duration_seconds, a histogram: from the complete head of a request until its
///   response was complete, in real time | method, route |
///
/// The label `method` is "other" for methods that are not registered, and empty if the request was
/// rejected before its method was known. `route` is Request::route(): empty if no route matched.
///
/// Memory: about 4 KiB for each route. Counting a known route allocates nothing. Thread: any. It
/// must exist as long as the servers, and not longer than the registry.
class Metrics {
 public:
  /// Throws std::bad_alloc. Aborts if the registry has one of these names with another meaning.
  explicit Metrics(metrics::Registry& registry, MetricsOptions options = {});
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// For ServerOptions::on_response. Out of memory, a new route is counted as "(other)".
  void record(const Request& request, const Response& response) noexcept;

 private:
  class [[gnu::visibility("hidden")]] Routes;

  tambour::detail::OwnedPointer<Routes> routes_;
};

/// Answers with the metrics of `registry`, as OpenMetrics if the field Accept prefers it, else in
/// the text format of Prometheus. A long answer is formatted and sent in pieces, between which the
/// loop serves other events. The registry must exist as long as the handler.
[[nodiscard]] Handler metrics_handler(const metrics::Registry& registry);

}  // namespace tambour::http

#pragma GCC visibility pop
