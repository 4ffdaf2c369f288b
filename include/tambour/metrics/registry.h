// Metrics of a program: counters, gauges and histograms, which any thread updates.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>

namespace tambour::metrics::detail {
class Family;
class Registered;
}  // namespace tambour::metrics::detail

#pragma GCC visibility push(default)

namespace tambour::metrics {

/// A value of a series, kept in one cell for each of 16 groups of threads, so that threads that
/// count at the same time rarely write to the same cache line.
using Cell = std::atomic<std::uint64_t>;

/// A number that only grows. Copies count together.
///
/// Lifetime: that of the Registry. Thread: any. Allocates nothing.
class Counter {
 public:
  /// Costs one uncontended atomic addition, some nanoseconds.
  void add(std::uint64_t amount = 1) noexcept;
  /// The sum over all threads. Additions that other threads make meanwhile may be missing.
  [[nodiscard]] std::uint64_t value() const noexcept;

 private:
  friend class detail::Family;
  explicit Counter(Cell* cells) noexcept : cells_(cells) {}

  Cell* cells_;
};

/// A number that is set, or rises and falls. Copies are the same gauge.
///
/// Lifetime: that of the Registry. Thread: any. Allocates nothing.
class Gauge {
 public:
  /// Sets the value, or adds to it; `amount` may be negative.
  void set(double value) noexcept;
  void add(double amount) noexcept;
  /// The present value.
  [[nodiscard]] double value() const noexcept;

 private:
  friend class detail::Family;
  explicit Gauge(Cell* cells) noexcept : cells_(cells) {}

  Cell* cells_;
};

/// Counts observed values in buckets. Copies count together.
///
/// Lifetime: that of the Registry. Thread: any. Allocates nothing.
class Histogram {
 public:
  /// Counts `value` in the first bucket whose upper bound is not less; NaN in the last one.
  void observe(double value) noexcept;
  /// In seconds, the unit of durations in Prometheus.
  void observe(Duration duration) noexcept {
    observe(std::chrono::duration<double>(duration).count());
  }
  /// The upper bounds of the buckets; the last bucket, which is not listed, has none.
  [[nodiscard]] std::span<const double> bounds() const noexcept { return bounds_; }
  /// The number of values in the bucket, of bounds().size() + 1 buckets.
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept;
  [[nodiscard]] double sum() const noexcept;

 private:
  friend class detail::Family;
  Histogram(Cell* cells, std::span<const double> bounds) noexcept
      : cells_(cells), bounds_(bounds) {}

  Cell* cells_;
  std::span<const double> bounds_;
};

/// Bounds for durations in seconds: 0.5 ms to 10 s in steps of 1, 2.5 and 5.
inline constexpr std::array<double, 14> duration_bounds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/// The series of one metric, one for each combination of label values.
template <class Metric>
class Family {
 public:
  /// Returns the series with these values of the labels, in the order of their names, and adds it
  /// if there is none. Values must be UTF-8. Beyond LabelOptions::series_max, returns the series
  /// whose values are all "(other)". Aborts if the number of values is not that of the names.
  ///
  /// Takes a lock: keep the series that are updated often. Throws std::bad_alloc, after which
  /// nothing has changed. Thread: any.
  [[nodiscard]] Metric with(std::span<const std::string_view> values) const;
  [[nodiscard]] Metric with(std::initializer_list<std::string_view> values) const {
    return with(std::span(values.begin(), values.size()));
  }

 private:
  friend class Registry;
  explicit Family(detail::Family& family) noexcept : family_(&family) {}

  detail::Family* family_;
};
template <>
Counter Family<Counter>::with(std::span<const std::string_view> values) const;
template <>
Gauge Family<Gauge>::with(std::span<const std::string_view> values) const;
template <>
Histogram Family<Histogram>::with(std::span<const std::string_view> values) const;

/// The limit of a metric with labels.
struct LabelOptions {
  /// The number of series that a metric may have, so that label values that come from clients
  /// cannot use memory without limit. Each series takes about 300 bytes, a histogram of 14 bounds
  /// about 2.2 KiB.
  std::size_t series_max = 256;
};

/// Keeps a function registered that computes a metric. Destroying it removes the metric, after a
/// call of the function by another thread has returned.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&&) noexcept = default;
  Registration& operator=(Registration&& other) noexcept;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

 private:
  friend class Registry;
  explicit Registration(std::shared_ptr<detail::Registered> registered) noexcept;

  std::shared_ptr<detail::Registered> registered_;
};

/// The labels of a computed series with their values, which must be UTF-8.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// What a function computes for a histogram.
struct HistogramValue {
  /// The number of values in each bucket alone, one more than there are bounds. Missing ones are 0.
  std::vector<std::uint64_t> counts{};
  double sum = 0;
};

/// The metrics of a program, or of a part of it. Exposition (exposition.h) formats them.
///
///   metrics::Registry registry;
///   metrics::Counter jobs = registry.counter("jobs_total", "Jobs that were completed.");
///   jobs.add();
///   auto queued = registry.gauges("jobs_queued", "Jobs that wait.", {"queue"});
///   queued.with({"mail"}).set(17);
///
/// Each name has one meaning: a second call with the same name, kind and labels returns the same
/// metric. Names are those of Prometheus, `[a-zA-Z_:][a-zA-Z0-9_:]*`, of labels
/// `[a-zA-Z_][a-zA-Z0-9_]*`; names of counters end in `_total`. Other names, a name that is
/// registered with another meaning, and a label that is named twice abort with a message. The
/// functions throw std::bad_alloc.
///
/// Thread: any. Lifetime: longer than everything that it returned.
class Registry {
 public:
  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry();

  /// `help`: a sentence for the reader of the metrics.
  [[nodiscard]] Counter counter(std::string name, std::string help);
  [[nodiscard]] Gauge gauge(std::string name, std::string help);
  /// `bounds` are the upper bounds of the buckets, ascending and finite, 1 to 60.
  [[nodiscard]] Histogram histogram(std::string name, std::string help,
                                    std::span<const double> bounds = duration_bounds);

  /// Metrics with labels, whose values with() gets.
  [[nodiscard]] Family<Counter> counters(std::string name, std::string help,
                                         std::vector<std::string> labels,
                                         LabelOptions options = {});
  [[nodiscard]] Family<Gauge> gauges(std::string name, std::string help,
                                     std::vector<std::string> labels, LabelOptions options = {});
  /// A label must not be named `le`.
  [[nodiscard]] Family<Histogram> histograms(std::string name, std::string help,
                                             std::vector<std::string> labels,
                                             std::span<const double> bounds = duration_bounds,
                                             LabelOptions options = {});

  /// A metric that `function` computes whenever the metrics are formatted, on the thread that
  /// formats them. The function must not throw and must not use this registry. Aborts if the name
  /// is registered.
  [[nodiscard]] Registration counter_function(std::string name, std::string help,
                                              std::function<double()> function);
  [[nodiscard]] Registration gauge_function(std::string name, std::string help,
                                            std::function<double()> function);
  /// The same for one series of a metric with labels: the metric has as many series as functions.
  /// Aborts if a series with the same values is registered, or if the metric has other labels. The
  /// program chooses the values of the labels; clients must not, because the number of series has
  /// no limit.
  [[nodiscard]] Registration counter_function(std::string name, std::string help, Labels labels,
                                              std::function<double()> function);
  [[nodiscard]] Registration gauge_function(std::string name, std::string help, Labels labels,
                                            std::function<double()> function);
  [[nodiscard]] Registration histogram_function(std::string name, std::string help, Labels labels,
                                                std::span<const double> bounds,
                                                std::function<HistogramValue()> function);

 private:
  friend class Exposition;
  class [[gnu::visibility("hidden")]] State;

  tambour::detail::OwnedPointer<State> state_;
};

}  // namespace tambour::metrics

#pragma GCC visibility pop
