// Parses a text that consists of one decimal number.
#pragma once

#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include <tambour/base/result.h>

#include "base/failure.h"

namespace tambour::detail::base {

/// Accepts only digits, preceded by a minus sign if Number is signed. Fails with EINVAL if the text
/// is not a number and with ERANGE if it does not fit into Number.
template <class Number>
[[nodiscard]] Result<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (rest != end || error == std::errc::invalid_argument) return failure(EINVAL);
  if (error == std::errc::result_out_of_range) return failure(ERANGE);
  return number;
}

}  // namespace tambour::detail::base
