// A decimal number that is all of a text.
#pragma once

#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include <tambour/result.h>

namespace tambour::base {

/// Nothing may stand before, behind or between the digits; a minus sign only where Number has one.
/// EINVAL where it is no number, ERANGE where it is one, and too large for Number.
template <class Number>
[[nodiscard]] Result<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (rest != end || error == std::errc::invalid_argument)
    return std::unexpected(system_error(EINVAL));
  if (error == std::errc::result_out_of_range) return std::unexpected(system_error(ERANGE));
  return number;
}

}  // namespace tambour::base
