// Characters of URIs, independent of the locale.
#pragma once

#include "base/ascii.h"

namespace tambour::libevent {

using detail::base::is_digit;
using detail::base::is_letter;

constexpr bool is_alphanumeric(char c) noexcept { return is_letter(c) || is_digit(c); }
constexpr bool is_hex_digit(char c) noexcept { return detail::base::hex_value(c) >= 0; }
/// RFC 3986, section 2.3.
constexpr bool is_unreserved(char c) noexcept {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace tambour::libevent
