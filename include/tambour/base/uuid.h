// Universally unique identifiers: RFC 9562.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace tambour {

/// A UUID as a value type. Programs make new ones of 16 random bytes: with_version_4().
class Uuid {
 public:
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
  [[nodiscard]] static std::optional<Uuid> parse(std::string_view text) noexcept;

  [[nodiscard]] constexpr const Bytes& bytes() const noexcept { return bytes_; }
  /// In lower case. Throws std::bad_alloc.
  [[nodiscard]] std::string to_string() const;

  constexpr auto operator<=>(const Uuid&) const noexcept = default;

 private:
  Bytes bytes_{};
};

}  // namespace tambour

#pragma GCC visibility pop
