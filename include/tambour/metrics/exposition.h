// Metrics as text, for Prometheus and what understands its formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/metrics/registry.h>

#pragma GCC visibility push(default)

namespace tambour::metrics {

/// The format that a scraper asks for.
enum class Format : std::uint8_t {
  prometheus_text,  ///< Text format of Prometheus, version 0.0.4.
  open_metrics,     ///< OpenMetrics, version 1.0.
};

/// The value of the field Content-Type for a format.
[[nodiscard]] std::string_view content_type(Format format) noexcept;

/// Formats the metrics of a registry in pieces, so that a loop with many series is not held up.
/// Metrics and series that are added meanwhile may be missing.
///
/// Thread: one at a time. Lifetime: at most that of the registry.
class Exposition {
 public:
  /// Formats nothing yet. `registry` must exist as long as this object.
  explicit Exposition(const Registry& registry, Format format = Format::prometheus_text) noexcept
      : registry_(registry), format_(format) {}

  /// Appends up to `series_max` series, of which a computed metric is one, to `text`. Returns
  /// whether there are more. Throws std::bad_alloc, after which it must not be called again.
  [[nodiscard]] bool next(std::string& text, std::size_t series_max = 100);

 private:
  const Registry& registry_;
  Format format_;
  std::size_t family_ = 0;       ///< The next one,
  std::size_t series_ = 0;       ///< from this series on.
  std::uint64_t functions_ = 0;  ///< How many functions had been added when its output began.
  bool has_head_ = false;        ///< The lines that describe the metric were written.
};

/// Formats all metrics of a registry. Throws std::bad_alloc.
[[nodiscard]] std::string format_metrics(const Registry& registry,
                                         Format format = Format::prometheus_text);

}  // namespace tambour::metrics

#pragma GCC visibility pop
