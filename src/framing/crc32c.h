// CRC32c (Castagnoli), as specified in RFC 4960, appendix B.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tambour::detail::framing {

inline constexpr auto crc32c_of_byte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82F63B78U : 0U);
    table[byte] = sum;
  }
  return table;
}();

/// Returns the checksum of `bytes`, appended to bytes whose checksum is `before`.
constexpr std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) noexcept {
  std::uint32_t sum = ~before;
  for (const char byte : bytes)
    sum = (sum >> 8) ^ crc32c_of_byte[(sum ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~sum;
}

}  // namespace tambour::detail::framing
