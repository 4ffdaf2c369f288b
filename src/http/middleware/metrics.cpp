// Metrics: counters in shards, of which each thread uses one, and their sums.
#include <tambour/http/metrics.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "loop/core.h"

namespace tambour::http {
namespace {

constexpr std::size_t shards_count = 16;
constexpr std::string_view other_routes = "(other)";
constexpr std::string_view other_methods = "other";

std::size_t shard_of_thread() noexcept {
  static constinit std::atomic<std::size_t> threads{0};
  thread_local const std::size_t index = threads.fetch_add(1, std::memory_order_relaxed);
  return index % shards_count;
}

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

void add(RouteMetrics& to, const Measured& measured) noexcept {
  ++to.requests;
  ++to.statuses[measured.status_class];
  if (measured.has_failed) ++to.failed;
  to.request_bytes += measured.request_bytes;
  to.response_bytes += measured.response_bytes;
  to.duration_sum += measured.duration;
  const auto bound = std::ranges::lower_bound(RouteMetrics::bounds, measured.duration);
  ++to.durations[static_cast<std::size_t>(bound - RouteMetrics::bounds.begin())];
}

void add(RouteMetrics& to, const RouteMetrics& other) noexcept {
  to.requests += other.requests;
  to.failed += other.failed;
  to.request_bytes += other.request_bytes;
  to.response_bytes += other.response_bytes;
  to.duration_sum += other.duration_sum;
  for (std::size_t i = 0; i < to.statuses.size(); ++i) to.statuses[i] += other.statuses[i];
  for (std::size_t i = 0; i < to.durations.size(); ++i) to.durations[i] += other.durations[i];
}

}  // namespace

/// Used by one thread of sixteen, so that its lock is rarely contended.
class alignas(64) Metrics::Shard {
 public:
  void set_routes_max(std::size_t routes_max) noexcept { routes_max_ = routes_max; }

  void record(std::string_view method, std::string_view route, const Measured& measured) noexcept {
    const std::lock_guard lock(mutex_);
    add(find(method, route), measured);
  }

  /// Calls `entry` for each route.
  void for_each(auto entry) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, metrics] : routes_) entry(*metrics);
    if (others_.requests > 0) entry(others_);
  }

 private:
  using Key = std::pair<std::string_view, std::string_view>;  ///< Views into the value.

  RouteMetrics& find(std::string_view method, std::string_view route) noexcept {
    if (const auto found = routes_.find(Key(route, method)); found != routes_.end())
      return *found->second;
    if (routes_.size() >= routes_max_) return others_;
    try {
      auto added = std::make_unique<RouteMetrics>();
      added->method = method;
      added->route = route;
      const Key key(added->route, added->method);
      return *routes_.emplace(key, std::move(added)).first->second;
    } catch (const std::exception&) {
      return others_;
    }
  }

  mutable std::mutex mutex_;
  std::size_t routes_max_ = 0;
  std::map<Key, std::unique_ptr<RouteMetrics>> routes_;
  RouteMetrics others_{.route = std::string(other_routes)};
};

Metrics::Metrics(MetricsOptions options) : shards_(std::make_unique<Shard[]>(shards_count)) {
  for (std::size_t i = 0; i < shards_count; ++i) shards_[i].set_routes_max(options.routes_max);
}
Metrics::~Metrics() = default;

void Metrics::record(const Request& request, const Response& response) noexcept {
  shards_[shard_of_thread()].record(label_of(request.head()), request.route(),
                                    measure(request, response));
}

std::vector<RouteMetrics> Metrics::snapshot() const {
  std::map<std::pair<std::string, std::string>, RouteMetrics> sums;
  for (std::size_t i = 0; i < shards_count; ++i) {
    shards_[i].for_each([&sums](const RouteMetrics& entry) {
      RouteMetrics& sum = sums[{entry.route, entry.method}];
      sum.route = entry.route;
      sum.method = entry.method;
      add(sum, entry);
    });
  }
  std::vector<RouteMetrics> all;
  all.reserve(sums.size());
  for (auto& [key, metrics] : sums) all.push_back(std::move(metrics));
  return all;
}

namespace {

std::string labels_of(const RouteMetrics& metrics) {
  std::string text = "method=\"" + metrics.method + "\",route=\"";
  for (const char c : metrics.route) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text += '"';
}

std::string seconds_text(Duration duration) {
  std::array<char, 32> digits{};
  const double seconds = std::chrono::duration<double>(duration).count();
  const int size = std::snprintf(digits.data(), digits.size(), "%.9g", seconds);
  return {digits.data(), static_cast<std::size_t>(size)};
}

void append_sample(std::string& to, std::string_view name, std::string_view labels,
                   std::string_view value) {
  to.append(name).append("{").append(labels).append("} ").append(value).append("\n");
}

void append_type(std::string& to, std::string_view name, std::string_view type) {
  to.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void append_counter(std::string& to, std::string_view name, std::span<const RouteMetrics> all,
                    std::uint64_t RouteMetrics::* member) {
  append_type(to, name, "counter");
  for (const RouteMetrics& metrics : all)
    append_sample(to, name, labels_of(metrics), std::to_string(metrics.*member));
}

void append_histogram(std::string& to, const RouteMetrics& metrics) {
  const std::string labels = labels_of(metrics);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < metrics.durations.size(); ++i) {
    sum += metrics.durations[i];
    const bool is_last = i == RouteMetrics::bounds.size();
    const std::string bound = is_last ? "+Inf" : seconds_text(RouteMetrics::bounds[i]);
    std::string labels_of_bucket = labels;
    labels_of_bucket.append(",le=\"").append(bound).append("\"");
    append_sample(to, "http_request_duration_seconds_bucket", labels_of_bucket,
                  std::to_string(sum));
  }
  append_sample(to, "http_request_duration_seconds_sum", labels,
                seconds_text(metrics.duration_sum));
  append_sample(to, "http_request_duration_seconds_count", labels, std::to_string(sum));
}

}  // namespace

std::string format_prometheus(std::span<const RouteMetrics> metrics) {
  std::string text;
  append_type(text, "http_requests_total", "counter");
  for (const RouteMetrics& entry : metrics) {
    for (std::size_t i = 0; i < entry.statuses.size(); ++i) {
      if (entry.statuses[i] == 0) continue;
      append_sample(text, "http_requests_total",
                    labels_of(entry) + ",status=\"" + std::to_string(i + 2) + "xx\"",
                    std::to_string(entry.statuses[i]));
    }
  }
  append_counter(text, "http_response_failures_total", metrics, &RouteMetrics::failed);
  append_counter(text, "http_request_body_bytes_total", metrics, &RouteMetrics::request_bytes);
  append_counter(text, "http_response_body_bytes_total", metrics, &RouteMetrics::response_bytes);
  append_type(text, "http_request_duration_seconds", "histogram");
  for (const RouteMetrics& entry : metrics) append_histogram(text, entry);
  return text;
}

}  // namespace tambour::http
