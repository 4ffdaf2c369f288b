// The limits of a connection of HTTP/2, for servers and clients: windows and fields.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h2/field_section.h"
#include "http_message/h2/frame.h"

namespace tambour::http {

/// Of each stream and of the connection, before SETTINGS and WINDOW_UPDATE: RFC 9113, section
/// 6.9.2.
inline constexpr std::uint32_t default_window = 65'535;

/// Answers to control frames that the peer does not read. Nothing is read while there are more.
inline constexpr std::size_t queued_answers_max = std::size_t{64} * 1024;

/// Frames that a connection handles in an iteration of its loop: more than those of the requests
/// that most clients have open at the same time, or of their responses. An iteration ends with a
/// write, so that the requests, or the WINDOW_UPDATE, that follow fewer frames would be several
/// small ones.
inline constexpr unsigned iteration_frames_max = 256;

[[nodiscard]] inline std::uint32_t clamped_window(std::uint32_t bytes) noexcept {
  return std::clamp(bytes, default_window, detail::h2::window_size_max);
}

/// The limits of a message whose start line has at most `start_line_bytes_max` bytes. Each field
/// counts 32 bytes more: RFC 9113, section 6.5.2.
[[nodiscard]] inline detail::h2::FieldLimits field_limits(
    const MessageLimits& limits, std::size_t fields_hard_max,
    std::size_t start_line_bytes_max) noexcept {
  constexpr std::size_t overhead = 32;
  std::size_t bytes_max;
  if (__builtin_mul_overflow(overhead, limits.fields_max, &bytes_max) ||
      __builtin_add_overflow(bytes_max, limits.fields_bytes_max, &bytes_max) ||
      __builtin_add_overflow(bytes_max, start_line_bytes_max, &bytes_max))
    bytes_max = std::numeric_limits<std::size_t>::max();
  return {.fields_max = limits.fields_max,
          .fields_hard_max = std::max(fields_hard_max, limits.fields_max),
          .bytes_max = bytes_max};
}

/// The value of SETTINGS_MAX_HEADER_LIST_SIZE.
[[nodiscard]] inline std::uint32_t header_list_size_of(
    const detail::h2::FieldLimits& limits) noexcept {
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(limits.bytes_max, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace tambour::http
