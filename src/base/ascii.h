// Letters and digits of ASCII, whatever the locale. Bytes from 0x80 belong to no class and have no
// case.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tambour::detail::base {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

[[nodiscard]] constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}
[[nodiscard]] constexpr char to_upper(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c & ~0x20) : c;
}

/// Returns `text` with its letters in lower case.
[[nodiscard]] constexpr std::string lower_case(std::string text) noexcept {
  for (char& c : text) c = to_lower(c);
  return text;
}

/// The value of a hexadecimal digit, or -1.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// Compares two texts without regard to the case of letters.
[[nodiscard]] constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

}  // namespace tambour::detail::base
