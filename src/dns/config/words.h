// Lines and words of configuration files.
#pragma once

#include <string_view>

namespace tambour::dns {

inline constexpr std::string_view blanks = " \t\r\f\v";

/// Removes the first line from `text`, and returns it without its line feed.
constexpr std::string_view take_line(std::string_view& text) noexcept {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  return line;
}

/// Removes the first word from `text`, and returns it; empty if there is none.
constexpr std::string_view take_word(std::string_view& text) noexcept {
  const auto begin = text.find_first_not_of(blanks);
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  const std::string_view word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace tambour::dns
