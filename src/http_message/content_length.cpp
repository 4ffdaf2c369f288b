// Parses the field Content-Length.
#include "http_message/content_length.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>

#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"

namespace tambour::http {
namespace {

constexpr std::uint64_t length_max = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t length_digits_max = 19;
constexpr detail::KnownName length_name = "Content-Length";

Result<std::uint64_t> parse_length(std::string_view text) noexcept {
  if (text.empty() || text.size() > length_digits_max)
    return failure(ErrorCode::bad_content_length);
  std::uint64_t length = 0;
  for (const char c : text) {
    if (!is_digit(c)) return failure(ErrorCode::bad_content_length);
    length = length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (length > length_max) return failure(ErrorCode::bad_content_length);
  return length;
}

}  // namespace

Result<std::optional<std::uint64_t>> content_length(const Fields& fields) noexcept {
  const std::size_t at = detail::FieldWriter::find(fields, length_name);
  if (at == fields.size()) return std::nullopt;
  const std::string_view value = fields[at].value;
  if (detail::FieldWriter::find(fields, length_name, at + 1) != fields.size() ||
      value.find(',') != std::string_view::npos)
    return failure(ErrorCode::several_content_lengths);
  const auto length = parse_length(value);
  if (!length) return std::unexpected(length.error());
  return *length;
}

Result<std::optional<std::uint64_t>> repeated_content_length(const Fields& fields) noexcept {
  std::optional<std::uint64_t> length;
  for (std::size_t at = fields.find("Content-Length"); at != fields.size();
       at = fields.find("Content-Length", at + 1)) {
    const std::string_view value = fields[at].value;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const auto parsed = parse_length(trim(value.substr(begin, end - begin)));
      if (!parsed) return std::unexpected(parsed.error());
      if (length && *length != *parsed) return failure(ErrorCode::several_content_lengths);
      length = *parsed;
      begin = end + 1;
    }
  }
  return length;
}

}  // namespace tambour::http
