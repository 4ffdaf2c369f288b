// Metrics: the series of each route, which the threads cache, and the handler for /metrics.
#include <tambour/http/metrics.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/loop/event_loop.h>
#include <tambour/metrics/exposition.h>
#include <tambour/task/sleep.h>

#include "http/coding/lists.h"
#include "loop/core.h"
#include "metrics/cells.h"

namespace tambour::http {
namespace {

constexpr std::string_view other_routes = "(other)";
constexpr std::string_view other_methods = "other";
constexpr std::array<std::string_view, 4> status_classes = {"2xx", "3xx", "4xx", "5xx"};

/// A method that a client has invented must not become a name of its own.
std::string_view label_of(const RequestHead& head) noexcept {
  constexpr std::array<std::string_view, 9> names = {
      "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"};
  if (head.target.empty()) return {};
  const auto found = std::ranges::find(names, head.method.name());
  return found != names.end() ? *found : other_methods;
}

struct Measured {
  std::size_t status_class = 0;
  bool has_failed = false;
  std::uint64_t request_bytes = 0;
  std::uint64_t response_bytes = 0;
  Duration duration{};
};

Measured measure(const Request& request, const Response& response) noexcept {
  Measured measured;
  measured.status_class =
      static_cast<std::size_t>(std::clamp(class_of(response.status()), 2, 5)) - 2;
  measured.has_failed = response.has_failed();
  measured.request_bytes = request.body_bytes();
  if (request.method() != Method::head) measured.response_bytes = response.body_bytes();
  // Not loop.now(), which is the time before the handler has computed.
  const std::int64_t now_ns = detail::loop::core_of(request.connection().loop()).clock_ns();
  measured.duration = TimePoint(Duration(now_ns)) - request.received_at();
  return measured;
}

/// The series of one method and route.
struct RouteSeries {
  std::string method;
  std::string route;
  std::array<metrics::Counter, status_classes.size()> statuses;
  metrics::Counter failures;
  metrics::Counter request_bytes;
  metrics::Counter response_bytes;
  metrics::Histogram durations;

  void record(const Measured& measured) noexcept {
    statuses[measured.status_class].add();
    if (measured.has_failed) failures.add();
    request_bytes.add(measured.request_bytes);
    response_bytes.add(measured.response_bytes);
    durations.observe(measured.duration);
  }
};

using Key = std::pair<std::string_view, std::string_view>;  ///< Views into the route.

/// The families of all routes.
class Families {
 public:
  /// One more than routes_max, for other routes.
  Families(metrics::Registry& registry, std::size_t routes)
      : requests_(registry.counters("http_requests_total", "Requests, by class of the status.",
                                    {"method", "route", "status"},
                                    {.series_max = status_classes.size() * routes})),
        failures_(registry.counters("http_response_failures_total",
                                    "Responses that the client did not receive completely.",
                                    labels(), {.series_max = routes})),
        request_bytes_(registry.counters("http_request_body_bytes_total",
                                         "Bytes of the bodies of requests, as received.", labels(),
                                         {.series_max = routes})),
        response_bytes_(registry.counters("http_response_body_bytes_total",
                                          "Bytes of the bodies of responses, as sent.", labels(),
                                          {.series_max = routes})),
        durations_(
            registry.histograms("http_request_duration_seconds",
                                "Time from the head of a request to the end of its response.",
                                labels(), metrics::duration_bounds, {.series_max = routes})) {}

  [[nodiscard]] std::unique_ptr<RouteSeries> make_route(std::string_view method,
                                                        std::string_view route) const {
    const auto requests = [&](std::size_t i) {
      return requests_.with({method, route, status_classes[i]});
    };
    return std::make_unique<RouteSeries>(
        RouteSeries{.method = std::string(method),
                    .route = std::string(route),
                    .statuses = {requests(0), requests(1), requests(2), requests(3)},
                    .failures = failures_.with({method, route}),
                    .request_bytes = request_bytes_.with({method, route}),
                    .response_bytes = response_bytes_.with({method, route}),
                    .durations = durations_.with({method, route})});
  }

 private:
  static std::vector<std::string> labels() { return {"method", "route"}; }

  metrics::Family<metrics::Counter> requests_;
  metrics::Family<metrics::Counter> failures_;
  metrics::Family<metrics::Counter> request_bytes_;
  metrics::Family<metrics::Counter> response_bytes_;
  metrics::Family<metrics::Histogram> durations_;
};

}  // namespace

class Metrics::Routes {
 public:
  Routes(metrics::Registry& registry, std::size_t routes_max)
      : routes_max_(std::min(routes_max, routes_limit)),
        families_(registry, routes_max_ + 1),
        others_(families_.make_route({}, other_routes)) {}

  RouteSeries& find(std::string_view method, std::string_view route) noexcept {
    Cache& cache = caches_[metrics::detail::group_of_thread()];
    const std::lock_guard lock(cache.mutex);
    const Key key(route, method);
    if (const auto found = cache.routes.find(key); found != cache.routes.end())
      return *found->second;
    try {
      RouteSeries& added = find_or_add(key);
      if (&added != others_.get()) cache.routes.emplace(Key(added.route, added.method), &added);
      return added;
    } catch (const std::exception&) {
      return *others_;
    }
  }

 private:
  /// Used by one group of threads, so that its lock is rarely contended.
  struct alignas(64) Cache {
    std::mutex mutex;
    std::map<Key, RouteSeries*> routes;
  };

  RouteSeries& find_or_add(const Key& key) {
    const std::lock_guard lock(mutex_);
    if (const auto found = routes_.find(key); found != routes_.end()) return *found->second;
    if (routes_.size() >= routes_max_) return *others_;
    auto added = families_.make_route(key.second, key.first);
    const Key views(added->route, added->method);
    return *routes_.emplace(views, std::move(added)).first->second;
  }

  /// So that the number of series is a std::size_t.
  static constexpr std::size_t routes_limit =
      std::numeric_limits<std::size_t>::max() / status_classes.size() - 1;

  const std::size_t routes_max_;
  Families families_;
  const std::unique_ptr<RouteSeries> others_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<RouteSeries>> routes_;
  std::array<Cache, metrics::detail::groups> caches_;
};

Metrics::Metrics(metrics::Registry& registry, MetricsOptions options)
    : routes_(std::make_unique<Routes>(registry, options.routes_max)) {}
Metrics::~Metrics() = default;

void Metrics::record(const Request& request, const Response& response) noexcept {
  routes_->find(label_of(request.head()), request.route()).record(measure(request, response));
}

namespace {

/// Prometheus asks for both formats and prefers one by a quality.
metrics::Format format_for(const Fields& fields) noexcept {
  int open_metrics = 0;
  int text = 0;
  for (std::size_t at = fields.find("Accept"); at != fields.size();
       at = fields.find("Accept", at + 1)) {
    for (const std::string_view element : detail::coding::ListElements(fields[at].value)) {
      const auto preference = detail::coding::parse_preference(element);
      if (!preference) continue;
      if (equal_ignoring_case(preference->name, "application/openmetrics-text"))
        open_metrics = std::max(open_metrics, preference->quality);
      else if (equal_ignoring_case(preference->name, "text/plain"))
        text = std::max(text, preference->quality);
    }
  }
  return open_metrics > 0 && open_metrics >= text ? metrics::Format::open_metrics
                                                  : metrics::Format::prometheus_text;
}

/// Appends what can be formatted in a fraction of a millisecond. Returns whether there is more.
bool append_slice(const detail::loop::Core& core, metrics::Exposition& exposition,
                  std::string& text) {
  constexpr std::size_t series_of_reading = 16;  // Of the clock; one may be a histogram.
  constexpr std::size_t readings_max = 64;       // Of simulations, whose time stands still.
  constexpr std::int64_t slice_ns = 250'000;
  const std::int64_t began_ns = core.clock_ns();
  bool more = true;
  for (std::size_t i = 0; more && i < readings_max; ++i) {
    more = exposition.next(text, series_of_reading);
    if (core.clock_ns() - began_ns >= slice_ns) break;
  }
  return more;
}

Task<> send_metrics(const metrics::Registry& registry, Request& request, Response& response) {
  constexpr std::size_t usual_bytes = 4096;
  const metrics::Format format = format_for(request.headers());
  response.headers().set("Content-Type", metrics::content_type(format));
  response.headers().set("Vary", "Accept");
  const detail::loop::Core& core = detail::loop::core_of(request.connection().loop());
  metrics::Exposition exposition(registry, format);
  std::string text;
  text.reserve(usual_bytes);
  bool more = append_slice(core, exposition, text);
  if (!more) {
    response.send(std::move(text));
    co_return;
  }
  while (more) {
    const Result<> written = co_await response.write(std::string_view(text));
    if (!written) co_return;
    const Result<> resumed = co_await sleep_for(Duration::zero());
    if (!resumed) co_return;
    text.clear();
    more = append_slice(core, exposition, text);
  }
  const Result<> written = co_await response.write(std::string_view(text));
  if (written) static_cast<void>(response.end());
}

}  // namespace

Handler metrics_handler(const metrics::Registry& registry) {
  return [&registry](Request& request, Response& response) {
    return send_metrics(registry, request, response);
  };
}

}  // namespace tambour::http
