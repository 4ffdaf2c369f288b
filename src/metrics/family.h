// A metric with its series, as the registry keeps it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/metrics/exposition.h>
#include <tambour/metrics/registry.h>

#include "metrics/cells.h"
#include "metrics/text.h"

namespace tambour::metrics::detail {

/// A function that computes a metric, until it is removed.
class Registered {
 public:
  using Number = std::function<double()>;
  using Buckets = std::function<HistogramValue()>;

  explicit Registered(Number number) : number_(std::move(number)) {}
  explicit Registered(Buckets buckets) : buckets_(std::move(buckets)) {}

  /// Waits for a call by another thread.
  void remove() noexcept;
  [[nodiscard]] bool is_removed() const noexcept {
    return is_removed_.load(std::memory_order_relaxed);
  }
  /// Returns false if the function was removed. A number is the sum.
  bool compute(HistogramValue& value);

 private:
  std::atomic<bool> is_removed_ = false;
  std::mutex mutex_;
  Number number_;    ///< Of counters and gauges.
  Buckets buckets_;  ///< Of histograms.
};

/// A series that a function computes.
struct Computed {
  std::vector<std::string> values;  ///< Of the labels.
  std::shared_ptr<Registered> function;
  std::string labels{};      ///< See label_text().
  std::uint64_t number = 0;  ///< Of those that were added to the family, from 0.
};

struct Series {
  std::vector<std::string> values;  ///< Of the labels.
  Cell* cells;
  std::string labels;  ///< See label_text().
};

/// As in the text formats, without braces: written when a series is added, not in each exposition.
[[nodiscard]] std::string label_text(const std::vector<std::string>& names,
                                     const std::vector<std::string>& values);

class Family {
 public:
  /// If `is_computed`, functions compute the metric, which then has no other series.
  Family(Description description, std::string help, std::size_t series_max, bool is_computed)
      : description_(std::move(description)),
        help_(std::move(help)),
        texts_(description_, help_, Format::prometheus_text),
        open_metrics_texts_(description_, help_, Format::open_metrics),
        series_max_(series_max),
        is_computed_(is_computed) {}

  [[nodiscard]] const Description& description() const noexcept { return description_; }
  [[nodiscard]] const FamilyTexts& texts(Format format) const noexcept {
    return format == Format::open_metrics ? open_metrics_texts_ : texts_;
  }
  [[nodiscard]] bool is_computed() const noexcept { return is_computed_; }
  /// Adds a function for these values, in the place of one that was removed if there is one: a
  /// program that registers and removes functions again and again needs no more memory. Returns
  /// false if there is a function for these values that was not removed.
  [[nodiscard]] bool add_function(Computed computed);
  /// How many functions were added until now.
  [[nodiscard]] std::uint64_t functions_added() const;
  /// The function in this place; null if there is none.
  [[nodiscard]] std::shared_ptr<const Computed> computed(std::size_t index) const;

  /// Returns the series with these values, which it adds if there is none.
  const Series& find(std::span<const std::string_view> values);
  /// The series with this number, in the order in which they were added; nullptr if there is none.
  [[nodiscard]] const Series* series(std::size_t index) const;

  static Counter counter(const Series& series) noexcept { return Counter(series.cells); }
  static Gauge gauge(const Series& series) noexcept { return Gauge(series.cells); }
  [[nodiscard]] Histogram histogram(const Series& series) const noexcept {
    return {series.cells, description_.bounds};
  }

 private:
  const Series& add(std::vector<std::string> values);

  const Description description_;
  const std::string help_;
  const FamilyTexts texts_;
  const FamilyTexts open_metrics_texts_;
  const std::size_t series_max_;
  const bool is_computed_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Computed>> functions_;
  std::uint64_t functions_added_ = 0;
  CellBlocks cells_;
  std::vector<std::unique_ptr<Series>> series_;
  std::map<std::vector<std::string>, const Series*, std::less<>> by_values_;
};

}  // namespace tambour::metrics::detail
