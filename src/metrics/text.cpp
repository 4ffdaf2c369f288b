// The heads of metrics, the labels of buckets, and numbers.
#include "metrics/text.h"

#include <cmath>

namespace tambour::metrics::detail {
namespace {

constexpr std::string_view total = "_total";

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

/// OpenMetrics wants bounds of buckets that can be told from integers.
std::string bound_text(double bound, Format format) {
  std::string text = "le=\"";
  append_number(text, bound);
  if (format == Format::open_metrics && text.find_first_of(".eI", 4) == std::string::npos)
    text += ".0";
  return text += '"';
}

}  // namespace

FamilyTexts::FamilyTexts(const Description& description, std::string_view help, Format format) {
  const bool is_open_metrics = format == Format::open_metrics;
  std::string_view name = description.name;
  if (is_open_metrics && description.kind == Kind::counter) name.remove_suffix(total.size());
  if (!help.empty()) {
    head_.append("# HELP ").append(name).append(" ");
    append_escaped(head_, help, is_open_metrics);
    head_ += '\n';
  }
  head_.append("# TYPE ").append(name).append(" ").append(name_of(description.kind)).append("\n");
  if (description.kind != Kind::histogram) return;
  for (const double bound : description.bounds) bounds_.push_back(bound_text(bound, format));
  bounds_.push_back(bound_text(HUGE_VAL, format));
}

void append_escaped(std::string& to, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\n') {
      to += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) to += '\\';
    to += c;
  }
}

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

}  // namespace tambour::metrics::detail
