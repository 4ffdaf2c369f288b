// Parses the field Range, and joins ranges that overlap.
#include "http/files/ranges.h"

#include <algorithm>
#include <charconv>

#include "http_message/characters.h"

namespace tambour::http {
namespace {

/// A number that is too large is the largest one, because it is compared with sizes only.
std::optional<std::uint64_t> parse_position(std::string_view text) noexcept {
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return is_digit(c); }))
    return std::nullopt;
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? number : UINT64_MAX;
}

/// No value if it is malformed; an empty range if it has no byte.
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t size) noexcept {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto last = parse_position(text.substr(dash + 1));
  if (dash == 0) {  // "-5": the last five bytes.
    if (!last) return std::nullopt;
    return ByteRange{.begin = size - std::min(*last, size), .end = size};
  }
  const auto first = parse_position(text.substr(0, dash));
  const bool is_open = dash + 1 == text.size();
  if (!first || (!last && !is_open) || (last && *last < *first)) return std::nullopt;
  if (*first >= size) return ByteRange{};
  return ByteRange{.begin = *first, .end = last && *last < size ? *last + 1 : size};
}

}  // namespace

std::optional<std::vector<ByteRange>> parse_ranges(std::string_view value, std::uint64_t size) {
  constexpr std::string_view unit = "bytes=";
  if (size == 0 || !equal_ignoring_case(value.substr(0, unit.size()), unit)) return std::nullopt;
  value.remove_prefix(unit.size());
  std::vector<ByteRange> ranges;
  std::uint64_t total = 0;
  std::size_t count = 0;
  while (true) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view text = trim(value.substr(0, comma));
    if (!text.empty()) {
      const auto range = parse_range(text, size);
      if (!range || ++count > ranges_max) return std::nullopt;
      if (range->size() > 0) ranges.push_back(*range);
      total += range->size();
    }
    if (comma == value.size()) break;
    value.remove_prefix(comma + 1);
  }
  if (count == 0 || (ranges.size() > 1 && total > size)) return std::nullopt;
  return ranges;
}

}  // namespace tambour::http
