// Classes of bytes in the grammars of URLs (RFC 3986) and of HTTP (RFC 9110, RFC 9112).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "base/ascii.h"

namespace tambour::http {

enum CharacterClass : std::uint16_t {
  token_char = 1,          ///< tchar: names of methods and fields.
  value_char = 2,          ///< field-vchar, space and tab; includes obs-text, the bytes from 0x80.
  unreserved_char = 4,     ///< RFC 3986, section 2.3.
  sub_delim_char = 8,      ///< RFC 3986, section 2.2.
  scheme_char = 16,        ///< RFC 3986, section 3.1, after the first letter.
  path_char = 32,          ///< pchar and "/", except "%".
  query_char = 64,         ///< Of a query or fragment: pchar, "/" and "?", except "%".
  user_char = 128,         ///< Of userinfo, except "%".
  host_char = 256,         ///< Of a registered name, except "%".
  target_path_char = 512,  ///< Of the path of a request target: see request_target.cpp.
  target_query_char = 1024,
};

namespace detail {

constexpr bool is_one_of(unsigned c, std::string_view set) noexcept {
  return c < 128 && set.find(static_cast<char>(c)) != std::string_view::npos;
}

constexpr std::uint16_t classes_of(unsigned c) noexcept {
  const bool is_ascii_letter = c < 128 && base::is_letter(static_cast<char>(c));
  const bool is_ascii_digit = c < 128 && base::is_digit(static_cast<char>(c));
  const bool alphanumeric = is_ascii_letter || is_ascii_digit;
  const bool unreserved = alphanumeric || is_one_of(c, "-._~");
  const bool sub_delim = is_one_of(c, "!$&'()*+,;=");
  const bool pchar = unreserved || sub_delim || is_one_of(c, ":@");
  // Browsers send these unencoded in some components (URL Standard, section 1.3).
  const bool browser = is_one_of(c, "[]\\^`{|}");
  std::uint16_t classes = 0;
  const auto add = [&classes](CharacterClass added, bool belongs) {
    if (belongs) classes = static_cast<std::uint16_t>(classes | added);
  };
  add(token_char, alphanumeric || is_one_of(c, "!#$%&'*+-.^_`|~"));
  add(value_char, c == '\t' || (c >= ' ' && c != 127));
  add(unreserved_char, unreserved);
  add(sub_delim_char, sub_delim);
  add(scheme_char, alphanumeric || is_one_of(c, "+-."));
  add(path_char, pchar || c == '/');
  add(query_char, pchar || is_one_of(c, "/?"));
  add(user_char, unreserved || sub_delim || c == ':');
  add(host_char, unreserved || sub_delim);
  add(target_path_char, pchar || c == '/' || browser);
  add(target_query_char, pchar || is_one_of(c, "/?%") || browser);
  return classes;
}

constexpr std::array<std::uint16_t, 256> make_classes() noexcept {
  std::array<std::uint16_t, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) classes[c] = classes_of(c);
  return classes;
}

inline constexpr std::array<std::uint16_t, 256> character_classes = make_classes();

}  // namespace detail

[[nodiscard]] constexpr bool is(char c, CharacterClass wanted) noexcept {
  return (detail::character_classes[static_cast<unsigned char>(c)] & wanted) != 0;
}

/// True if all characters of `text` belong to `wanted`, which is one class.
[[nodiscard]] constexpr bool all_are(std::string_view text, CharacterClass wanted) noexcept {
  for (const char c : text) {
    if (!is(c, wanted)) return false;
  }
  return true;
}

namespace detail {

/// Eight bytes, of which the highest bit of each control character is set in the result: of those
/// below 0x20, of those that are 0x7F. A borrow may mark a byte that is higher than one that is
/// marked rightly.
[[nodiscard]] constexpr std::uint64_t marks_of_controls(std::uint64_t word) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  const std::uint64_t controls = (word - ones * 0x20) & ~word;
  const std::uint64_t deletes = ((word ^ (ones * 0x7F)) - ones) & ~(word ^ (ones * 0x7F));
  return (controls | deletes) & (ones * 0x80);
}

/// The same as all_are(text, value_char) for eight bytes.
[[nodiscard]] inline bool are_value_chars(const char* text) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return marks_of_controls(word) == 0 || all_are({text, sizeof word}, value_char);
}

/// Eight bytes, of which the highest bit of each is set in the result that is neither a letter nor
/// "-". Exact for each byte.
[[nodiscard]] constexpr std::uint64_t marks_of_unusual_in_name(std::uint64_t word) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t high = ones * 0x80;
  const std::uint64_t low = word & ~high;  // So that no sum below exceeds a byte.
  const std::uint64_t lower = low | (ones * 0x20);
  const std::uint64_t letters = (lower + ones * (0x80 - 'a')) & ~(lower + ones * (0x7F - 'z'));
  const std::uint64_t others = (low ^ (ones * '-')) + ones * 0x7F;
  return ((~letters & others) | word) & high;
}

/// The same as all_are(text, token_char) for eight bytes. Most names consist of letters and "-".
[[nodiscard]] inline bool are_token_chars(const char* text) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return marks_of_unusual_in_name(word) == 0 || all_are({text, sizeof word}, token_char);
}

/// Calls `are_wanted(at)` for all parts of eight bytes, the last of which overlaps the one before,
/// until it returns false; returns whether it did not. The text has at least eight bytes.
template <class Predicate>
[[nodiscard]] bool all_words_are(std::string_view text, Predicate are_wanted) noexcept {
  constexpr std::size_t word_size = 8;
  const char* at = text.data();
  const char* const last = at + text.size() - word_size;
  for (; at < last; at += word_size) {
    if (!are_wanted(at)) return false;
  }
  return are_wanted(last);
}

}  // namespace detail

/// True if `text` is not empty and all_are(text, token_char). Checks eight bytes at a time.
[[nodiscard]] inline bool is_field_name(std::string_view text) noexcept {
  if (text.size() < 8) return !text.empty() && all_are(text, token_char);
  return detail::all_words_are(text, detail::are_token_chars);
}

/// The same as all_are(text, value_char), eight bytes at a time.
[[nodiscard]] inline bool is_field_value(std::string_view text) noexcept {
  if (text.size() < 8) return all_are(text, value_char);
  return detail::all_words_are(text, detail::are_value_chars);
}

using detail::base::equal_ignoring_case;
using detail::base::hex_value;
using detail::base::is_digit;
using detail::base::is_letter;
using detail::base::to_lower;
using detail::base::to_upper;

/// Removes spaces and tabs (OWS: RFC 9110, section 5.6.3) from both ends.
[[nodiscard]] constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace tambour::http
