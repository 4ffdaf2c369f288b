// Declarations that reading and writing PROXY protocol headers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tambour/bytes/buffer.h>

namespace tambour::detail::framing {

inline constexpr std::string_view proxy_v1_start = "PROXY ";
inline constexpr std::size_t proxy_v1_bytes_max = 107;  // Including CRLF.

inline constexpr std::string_view proxy_v2_signature{"\r\n\r\n\0\r\nQUIT\n", 12};
inline constexpr std::size_t proxy_v2_bytes = 16;  // The fixed part, before addresses and fields.

/// The upper four bits of the byte for family and protocol.
enum class ProxyFamily : std::uint8_t { unspecified, ip_4, ip_6, local };
/// The lower four bits.
enum class ProxyTransport : std::uint8_t { unspecified, stream, datagram };

/// Returns the size of both addresses and ports together.
constexpr std::size_t proxy_address_bytes(ProxyFamily family) noexcept {
  switch (family) {
    case ProxyFamily::ip_4:
      return 12;
    case ProxyFamily::ip_6:
      return 36;
    case ProxyFamily::local:
      return 216;
    case ProxyFamily::unspecified:
      break;
  }
  return 0;
}

inline constexpr std::size_t proxy_field_bytes = 3;  // The type and the length of the value.
inline constexpr std::size_t unique_id_bytes_max = 128;

/// Returns how many bytes are missing from the version 2 header at the start of `taken`. Returns 0
/// if that is not known yet, or if it is not a version 2 header.
[[nodiscard]] std::size_t proxy_v2_bytes_missing(Buffer& taken);

}  // namespace tambour::detail::framing
