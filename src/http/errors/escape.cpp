// Escapes text for JSON and HTML.
#include "http/errors/escape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "http_message/ws/utf8.h"

namespace tambour::http {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD.

/// The size of the character at the front of `text`, which begins with a byte from 0x80; 0 if it is
/// invalid.
std::size_t utf8_size(std::string_view text) noexcept {
  for (std::size_t size = 2; size <= std::min<std::size_t>(text.size(), 4); ++size) {
    if (detail::ws::is_utf8(text.substr(0, size))) return size;
  }
  return 0;
}

/// Calls `append_ascii(to, c)` for ASCII characters, and copies others.
void append_text(std::string& to, std::string_view text, void (*append_ascii)(std::string&, char)) {
  while (!text.empty()) {
    std::size_t size = 1;
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      append_ascii(to, text.front());
    } else {
      size = utf8_size(text);
      to += size > 0 ? text.substr(0, size) : replacement;
      size = std::max<std::size_t>(size, 1);
    }
    text.remove_prefix(size);
  }
}

void append_json_character(std::string& to, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    to.append(1, '\\').append(1, c);
  } else if (byte >= 0x20 && byte != 0x7F) {
    to += c;
  } else {
    to.append("\\u00").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
  }
}

void append_html_character(std::string& to, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '<') {
    to += "&lt;";
  } else if (c == '>') {
    to += "&gt;";
  } else if (c == '&') {
    to += "&amp;";
  } else if ((byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7F) {
    to += replacement;
  } else {
    to += c;
  }
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  append_text(to, text, &append_json_character);
  to += '"';
}

void append_html_text(std::string& to, std::string_view text) {
  append_text(to, text, &append_html_character);
}

}  // namespace tambour::http
