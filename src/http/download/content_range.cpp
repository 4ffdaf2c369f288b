// Content-Range and validators.
#include "http/download/content_range.h"

#include <algorithm>
#include <chrono>

#include <tambour/http/date.h>

#include "base/parse_number.h"
#include "http_message/characters.h"

namespace tambour::http::detail::download {
namespace {

std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  const auto number = base::parse_number<std::uint64_t>(text);
  if (!number) return std::nullopt;
  return *number;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view value) noexcept {
  constexpr std::string_view unit = "bytes ";
  value = trim(value);
  if (value.size() < unit.size() || !equal_ignoring_case(value.substr(0, unit.size()), unit))
    return std::nullopt;
  value = trim(value.substr(unit.size()));
  const std::size_t hyphen = value.find('-');
  const std::size_t slash = value.find('/');
  if (hyphen == std::string_view::npos || slash == std::string_view::npos || slash < hyphen)
    return std::nullopt;
  const auto first = parse_digits(value.substr(0, hyphen));
  const auto last = parse_digits(value.substr(hyphen + 1, slash - hyphen - 1));
  if (!first || !last || *last < *first) return std::nullopt;
  ContentRange range{.first = *first, .last = *last};
  if (value.substr(slash + 1) == "*") return range;
  range.total = parse_digits(value.substr(slash + 1));
  if (!range.total || *range.total <= *last) return std::nullopt;
  return range;
}

std::string validator_of(const Fields& fields) {
  const auto tag = fields.get("ETag");
  if (tag && tag->size() >= 2 && tag->starts_with('"') && tag->ends_with('"'))
    return std::string(*tag);
  if (tag) return {};
  const auto modified = fields.get("Last-Modified");
  const auto date = fields.get("Date");
  if (!modified || !date) return {};
  const auto modified_at = parse_date(*modified);
  const auto sent_at = parse_date(*date);
  if (!modified_at || !sent_at || *sent_at - *modified_at < std::chrono::minutes(1)) return {};
  return std::string(*modified);
}

}  // namespace tambour::http::detail::download
