// Universally unique identifiers: RFC 9562.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A UUID as a value type. To create a new one, pass 16 random bytes to with_version_4().
class Uuid {
 public:
  /// The 16 bytes in network byte order (RFC 9562, section 4).
  using Bytes = std::array<std::uint8_t, 16>;

  /// The nil UUID, of zeros.
  constexpr Uuid() noexcept = default;
  /// In the order in which they are written.
  constexpr explicit Uuid(const Bytes& bytes) noexcept : bytes_(bytes) {}

  /// A UUID of random bytes (section 5.4): version and variant replace 6 bits of them.
  [[nodiscard]] static constexpr Uuid with_version_4(Bytes random) noexcept {
    random[6] = static_cast<std::uint8_t>((random[6] & 0x0FU) | 0x40U);
    random[8] = static_cast<std::uint8_t>((random[8] & 0x3FU) | 0x80U);
    return Uuid(random);
  }

  /// Parses "f81d4fae-7dec-11d0-a765-00a0c91e6bf6" (section 4), in either case of letters, without
  /// braces and "urn:uuid:". Any version and variant is accepted. No value for another text.
  [[nodiscard]] static constexpr std::optional<Uuid> parse(std::string_view text) noexcept {
    if (text.size() != text_size) return std::nullopt;
    Bytes bytes{};
    std::size_t digits = 0;
    for (std::size_t i = 0; i < text_size; ++i) {
      if (is_hyphen_at(i)) {
        if (text[i] != '-') return std::nullopt;
        continue;
      }
      const int value = value_of(text[i]);
      if (value < 0) return std::nullopt;
      bytes[digits / 2] = static_cast<std::uint8_t>((bytes[digits / 2] << 4U) | value);
      ++digits;
    }
    return Uuid(bytes);
  }

  /// The bytes, for a database or a message.
  [[nodiscard]] constexpr const Bytes& bytes() const noexcept { return bytes_; }
  /// In lower case. Throws std::bad_alloc.
  [[nodiscard]] std::string to_string() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(text_size);
    for (const std::uint8_t byte : bytes_) {
      if (is_hyphen_at(text.size())) text += '-';
      text.append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
    }
    return text;
  }

  constexpr auto operator<=>(const Uuid&) const noexcept = default;

 private:
  static constexpr std::size_t text_size = 36;

  static constexpr bool is_hyphen_at(std::size_t at) noexcept {
    return at == 8 || at == 13 || at == 18 || at == 23;
  }
  /// -1: not a hexadecimal digit.
  static constexpr int value_of(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  }

  Bytes bytes_{};
};

}  // namespace tambour

#pragma GCC visibility pop
