// The text formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
// https://prometheus.io/docs/specs/om/open_metrics_spec/.
#include <tambour/metrics/exposition.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/state.h"

namespace tambour::metrics {
namespace {

using detail::append_integer;
using detail::append_number;
using detail::Description;
using detail::FamilyTexts;
using detail::Kind;

/// Appends the lines of one metric.
class FamilyWriter {
 public:
  FamilyWriter(std::string& to, const detail::Family& family, Format format) noexcept
      : to_(to),
        family_(family),
        description_(family.description()),
        texts_(family.texts(format)) {}

  void append_head() { to_.append(texts_.head()); }

  void append_computed(std::string_view labels, const HistogramValue& value) {
    if (description_.kind == Kind::histogram) {
      append_histogram(
          labels, [&value](std::size_t i) { return i < value.counts.size() ? value.counts[i] : 0; },
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
            series.labels, [&histogram](std::size_t i) { return histogram.count(i); },
            histogram.sum());
        break;
      }
    }
  }

 private:
  /// "name_suffix{label="value",le="bound"} ".
  void append_name(std::string_view suffix, std::string_view labels, std::string_view bound = {}) {
    to_.append(description_.name).append(suffix);
    if (labels.empty() && bound.empty()) {
      to_ += ' ';
      return;
    }
    to_.append("{").append(labels);
    if (!labels.empty() && !bound.empty()) to_ += ',';
    to_.append(bound).append("} ");
  }

  void append_count(std::string_view suffix, std::string_view labels, std::uint64_t count,
                    std::string_view bound = {}) {
    append_name(suffix, labels, bound);
    append_integer(to_, count);
    to_ += '\n';
  }

  /// `count_of` returns the number of values in one bucket.
  template <class CountOf>
  void append_histogram(std::string_view labels, CountOf count_of, double sum) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= description_.bounds.size(); ++i) {
      count += count_of(i);
      append_count("_bucket", labels, count, texts_.bound(i));
    }
    append_name("_sum", labels);
    append_number(to_, sum);
    to_ += '\n';
    append_count("_count", labels, count);
  }

  std::string& to_;
  const detail::Family& family_;
  const Description& description_;
  const FamilyTexts& texts_;
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
    if (!family->is_computed()) {
      for (const detail::Series* series; (series = family->series(series_)) != nullptr; ++series_) {
        if (left == 0) return true;
        write_head();
        writer.append_series(*series);
      }
      continue;
    }
    // A function that is added meanwhile may be in a place that is still to come, although its
    // series was already written: with the function that was removed before.
    if (series_ == 0) functions_ = family->functions_added();
    for (; const auto computed = family->computed(series_); ++series_) {
      if (computed->number >= functions_) continue;
      if (left == 0 && !computed->function->is_removed()) return true;
      HistogramValue value;
      if (!computed->function->compute(value)) continue;
      write_head();
      writer.append_computed(computed->labels, value);
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
