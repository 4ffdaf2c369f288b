// The text formats of metrics, as far as they do not depend on values.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/metrics/exposition.h>

namespace tambour::metrics::detail {

enum class Kind : std::uint8_t { counter, gauge, histogram };

/// What a metric is: what a second registration of its name must agree on.
struct Description {
  std::string name{};
  Kind kind = Kind::counter;
  std::vector<std::string> labels{};
  std::vector<double> bounds{};  ///< Of histograms.

  bool operator==(const Description&) const = default;
};

/// What each exposition writes of a metric, whatever its series are: made once.
class FamilyTexts {
 public:
  FamilyTexts(const Description& description, std::string_view help, Format format);

  /// The lines before the series.
  [[nodiscard]] std::string_view head() const noexcept { return head_; }
  /// The label of a bucket, with its quotes; of a histogram.
  [[nodiscard]] std::string_view bound(std::size_t bucket) const noexcept {
    return bounds_[bucket];
  }

 private:
  std::string head_;
  std::vector<std::string> bounds_;
};

/// `quotes` are escaped in values of labels, and in all texts of OpenMetrics.
void append_escaped(std::string& to, std::string_view text, bool quotes);

inline void append_integer(std::string& to, std::integral auto number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  to.append(digits.data(), end);
}

/// A text that is read as the same number: most numbers are counts, and an integer is written
/// several times as fast as the shortest text of a fraction.
void append_number(std::string& to, double number);

}  // namespace tambour::metrics::detail
