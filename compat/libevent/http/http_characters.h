// Characters of URIs, independent of the locale.
#pragma once

namespace tambour::libevent {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_alphanumeric(char c) noexcept { return is_letter(c) || is_digit(c); }
constexpr bool is_hex_digit(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
/// RFC 3986, section 2.3.
constexpr bool is_unreserved(char c) noexcept {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace tambour::libevent
