// safe_file_name().
#include <algorithm>

#include <tambour/http/form.h>

namespace tambour::http {
namespace {

constexpr std::size_t name_bytes_max = 255;  ///< NAME_MAX of Linux.

/// The size of the valid UTF-8 character at the front of `text` (RFC 3629), or 0.
std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  std::size_t size = 0;
  unsigned least = 0x80;  // The range of the second byte, which excludes long forms, surrogates,
  unsigned limit = 0xBF;  // and what is above U+10FFFF.
  if (first >= 0xC2 && first <= 0xDF) size = 2;
  if (first >= 0xE0 && first <= 0xEF) size = 3;
  if (first >= 0xF0 && first <= 0xF4) size = 4;
  if (first == 0xE0) least = 0xA0;
  if (first == 0xED) limit = 0x9F;
  if (first == 0xF0) least = 0x90;
  if (first == 0xF4) limit = 0x8F;
  if (size == 0 || text.size() < size || byte(1) < least || byte(1) > limit) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return size;
}

/// U+0000 to U+001F, U+007F, and U+0080 to U+009F.
bool is_control(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string safe_file_name(std::string_view name) {
  if (const std::size_t slash = name.find_last_of("/\\"); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  std::string safe;
  while (!name.empty()) {
    const std::size_t size = character_size(name);
    std::string_view character = size > 0 ? name.substr(0, size) : "_";
    name.remove_prefix(std::max<std::size_t>(size, 1));
    const bool is_hidden = safe.empty() && (character == "." || character == " ");
    if (is_hidden || is_control(character)) continue;
    if (safe.size() + character.size() > name_bytes_max) break;
    safe += character;
  }
  while (safe.ends_with(' ') || safe.ends_with('.')) safe.pop_back();
  return safe;
}

std::string FormPart::safe_file_name() const {
  return http::safe_file_name(file_name.value_or(""));
}

}  // namespace tambour::http
