// The frames of HTTP/2: RFC 9113, section 4 and 6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::h2 {

enum class FrameType : std::uint8_t {
  data = 0,
  headers = 1,
  priority = 2,
  rst_stream = 3,
  settings = 4,
  push_promise = 5,
  ping = 6,
  goaway = 7,
  window_update = 8,
  continuation = 9,
  priority_update = 16,  ///< RFC 9218.
};

/// Flags, some of which have the same value for different types of frames.
namespace flag {
inline constexpr std::uint8_t ack = 0x1;
inline constexpr std::uint8_t end_stream = 0x1;
inline constexpr std::uint8_t end_headers = 0x4;
inline constexpr std::uint8_t padded = 0x8;
inline constexpr std::uint8_t priority = 0x20;
}  // namespace flag

enum class SettingId : std::uint16_t {
  header_table_size = 1,
  enable_push = 2,
  max_concurrent_streams = 3,
  initial_window_size = 4,
  max_frame_size = 5,
  max_header_list_size = 6,
  enable_connect_protocol = 8,  ///< RFC 8441.
  no_rfc7540_priorities = 9,    ///< RFC 9218.
};

struct Setting {
  SettingId id{};
  std::uint32_t value = 0;

  bool operator==(const Setting&) const = default;
};

/// What a client sends before its first frame.
inline constexpr std::string_view client_preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline constexpr std::size_t frame_head_size = 9;
inline constexpr std::size_t setting_size = 6;
/// The limits of SETTINGS_MAX_FRAME_SIZE, of which the lower one is its initial value.
inline constexpr std::uint32_t frame_size_max_min = 16384;
inline constexpr std::uint32_t frame_size_max_max = 16777215;
inline constexpr std::uint32_t window_size_max = 0x7FFFFFFF;
inline constexpr std::uint32_t stream_id_max = 0x7FFFFFFF;

}  // namespace tambour::http::detail::h2
