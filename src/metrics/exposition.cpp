// The text formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
// https://prometheus.io/docs/specs/om/open_metrics_spec/.
#include <tambour/metrics/exposition.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/state.h"

namespace tambour::metrics {
namespace {

using detail::Description;
using detail::Kind;

constexpr std::string_view total = "_total";

void append_integer(std::string& to, std::integral auto number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  to.append(digits.data(), end);
}

/// A text that is read as the same number: most numbers are counts, and an integer is written
/// several times as fast as the shortest text of a fraction.
void append_number(std::string& to, double number) {
  constexpr double exact_max = 1e15;
  if (std::abs(number) < exact_max && number == std::trunc(number)) {
    append_integer(to, static_cast<std::int64_t>(number));
  } else if (std::isnan(number)) {
    to += "NaN";
  } else if (std::isinf(number)) {
    to += number < 0 ? "-Inf" : "+Inf";
  } else {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    to.append(digits.data(), end);
  }
}

/// OpenMetrics wants bounds of buckets that can be told from integers.
void append_bound(std::string& to, double bound, Format format) {
  const std::size_t begin = to.size();
  append_number(to, bound);
  if (format == Format::open_metrics && to.find_first_of(".eI", begin) == std::string::npos)
    to += ".0";
}

std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::counter:
      return "counter";
    case Kind::gauge:
      return "gauge";
    case Kind::histogram:
      return "histogram";
  }
  return "unknown";
}

/// Appends the lines of one metric.
class FamilyWriter {
 public:
  FamilyWriter(std::string& to, const detail::Family& family, Format format) noexcept
      : to_(to), family_(family), description_(family.description()), format_(format) {}

  void append_head() {
    const bool is_open_metrics = format_ == Format::open_metrics;
    std::string_view name = description_.name;
    if (is_open_metrics && description_.kind == Kind::counter) name.remove_suffix(total.size());
    if (!family_.help().empty()) {
      to_.append("# HELP ").append(name).append(" ");
      detail::append_escaped(to_, family_.help(), is_open_metrics);
      to_ += '\n';
    }
    to_.append("# TYPE ").append(name).append(" ").append(name_of(description_.kind)).append("\n");
  }

  void append_computed(std::string_view labels, const HistogramValue& value) {
    if (description_.kind == Kind::histogram) {
      append_histogram(
          labels, description_.bounds,
          [&value](std::size_t i) { return i < value.counts.size() ? value.counts[i] : 0; },
          value.sum);
      return;
    }
    append_name("", labels);
    append_number(to_, value.sum);
    to_ += '\n';
  }

  void append_series(const detail::Series& series) {
    switch (description_.kind) {
      case Kind::counter:
        append_count("", series.labels, detail::Family::counter(series).value());
        break;
      case Kind::gauge:
        append_name("", series.labels);
        append_number(to_, detail::Family::gauge(series).value());
        to_ += '\n';
        break;
      case Kind::histogram: {
        const Histogram histogram = family_.histogram(series);
        append_histogram(
            series.labels, histogram.bounds(),
            [&histogram](std::size_t i) { return histogram.count(i); }, histogram.sum());
        break;
      }
    }
  }

 private:
  /// "name_suffix{label="value",le="bound"} ".
  void append_name(std::string_view suffix, std::string_view labels,
                   const double* bound = nullptr) {
    to_.append(description_.name).append(suffix);
    if (labels.empty() && bound == nullptr) {
      to_ += ' ';
      return;
    }
    to_.append("{").append(labels);
    if (bound != nullptr) {
      to_ += labels.empty() ? "le=\"" : ",le=\"";
      append_bound(to_, *bound, format_);
      to_ += '"';
    }
    to_ += "} ";
  }

  void append_count(std::string_view suffix, std::string_view labels, std::uint64_t count,
                    const double* bound = nullptr) {
    append_name(suffix, labels, bound);
    append_integer(to_, count);
    to_ += '\n';
  }

  /// `count_of` returns the number of values in one bucket.
  template <class CountOf>
  void append_histogram(std::string_view labels, std::span<const double> bounds, CountOf count_of,
                        double sum) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= bounds.size(); ++i) {
      const double bound = i == bounds.size() ? HUGE_VAL : bounds[i];
      count += count_of(i);
      append_count("_bucket", labels, count, &bound);
    }
    append_name("_sum", labels);
    append_number(to_, sum);
    to_ += '\n';
    append_count("_count", labels, count);
  }

  std::string& to_;
  const detail::Family& family_;
  const Description& description_;
  Format format_;
};

}  // namespace

std::string_view content_type(Format format) noexcept {
  return format == Format::open_metrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

bool Exposition::next(std::string& text, std::size_t series_max) {
  std::size_t left = std::max<std::size_t>(series_max, 1);
  for (const detail::Family* family; (family = registry_.state_->family(family_)) != nullptr;
       ++family_, series_ = 0, has_head_ = false) {
    FamilyWriter writer(text, *family, format_);
    const auto write_head = [&] {
      --left;
      if (!std::exchange(has_head_, true)) writer.append_head();
    };
    for (; const auto computed = family->computed(series_); ++series_) {
      if (left == 0 && !computed->function->is_removed()) return true;
      HistogramValue value;
      if (!computed->function->compute(value)) continue;
      write_head();
      writer.append_computed(computed->labels, value);
    }
    if (family->is_computed()) continue;
    for (const detail::Series* series; (series = family->series(series_)) != nullptr; ++series_) {
      if (left == 0) return true;
      write_head();
      writer.append_series(*series);
    }
  }
  if (format_ == Format::open_metrics) text += "# EOF\n";
  return false;
}

std::string format_metrics(const Registry& registry, Format format) {
  std::string text;
  Exposition exposition(registry, format);
  while (exposition.next(text)) {
  }
  return text;
}

}  // namespace tambour::metrics
