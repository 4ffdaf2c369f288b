// The text of a UUID.
#include <tambour/base/uuid.h>

#include "base/ascii.h"

namespace tambour {
namespace {

constexpr std::size_t text_size = 36;

constexpr bool is_hyphen_at(std::size_t at) noexcept {
  return at == 8 || at == 13 || at == 18 || at == 23;
}

}  // namespace

std::optional<Uuid> Uuid::parse(std::string_view text) noexcept {
  if (text.size() != text_size) return std::nullopt;
  Bytes bytes{};
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text_size; ++i) {
    if (is_hyphen_at(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int value = detail::base::hex_value(text[i]);
    if (value < 0) return std::nullopt;
    std::uint8_t& byte = bytes[digits / 2];
    byte = static_cast<std::uint8_t>(byte * 16 + value);
    ++digits;
  }
  return Uuid(bytes);
}

std::string Uuid::to_string() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(text_size);
  for (const std::uint8_t byte : bytes_) {
    if (is_hyphen_at(text.size())) text += '-';
    text.append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
  }
  return text;
}

}  // namespace tambour
