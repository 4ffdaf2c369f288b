// Frames of the WebSocket protocol: RFC 6455, sections 5 and 7.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket_error.h>

namespace tambour::http::detail::ws {

enum class Role : std::uint8_t { client, server };

enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

[[nodiscard]] constexpr bool is_control(Opcode opcode) noexcept {
  return static_cast<std::uint8_t>(opcode) >= 8;
}

/// True for the codes that a close frame may contain: 1000 to 1003, 1007 to 1014 (those that IANA
/// has registered), and 3000 to 4999.
[[nodiscard]] constexpr bool is_sent(CloseCode code) noexcept {
  const auto number = static_cast<std::uint16_t>(code);
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) ||
         (number >= 3000 && number <= 4999);
}

/// The key with which the payload of a frame is masked: byte i of the payload with byte i % 4.
using MaskKey = std::array<std::byte, 4>;

/// The maximum of a control frame's payload.
inline constexpr std::size_t control_bytes_max = 125;
/// Two bytes, a size of eight, and a key of four.
inline constexpr std::size_t frame_header_bytes_max = 14;

struct FrameHeader {
  Opcode opcode = Opcode::binary;
  bool is_final = true;
  bool is_compressed = false;  ///< RSV1, which permessage-deflate defines (RFC 7692, section 6).
  std::uint64_t payload_bytes = 0;
  std::optional<MaskKey> mask{};
};

}  // namespace tambour::http::detail::ws
