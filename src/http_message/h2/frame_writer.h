// Writes frames: RFC 9113, section 6. head_writer.h writes HEADERS.
//
// Each function appends one frame and throws std::bad_alloc; nothing is appended then. Numbers of
// streams are at most stream_id_max.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "http_message/h2/frame.h"
#include "http_message/h2/violation.h"

namespace tambour::http::detail::h2 {

/// Appends the whole `data`, which is at most the SETTINGS_MAX_FRAME_SIZE of the peer; large data
/// is not copied.
void append_data(Buffer& to, std::uint32_t stream_id, Buffer data, bool end_stream);
/// The same for a copy of a few bytes.
void append_short_data(Buffer& to, std::uint32_t stream_id, const Buffer& data, bool end_stream);
void append_short_data(Buffer& to, std::uint32_t stream_id, std::string_view data, bool end_stream);
/// Appends the head of a DATA frame, which `size` bytes must follow.
void append_data_head(Buffer& to, std::uint32_t stream_id, std::uint32_t size, bool end_stream);
void append_rst_stream(Buffer& to, std::uint32_t stream_id, ErrorCode error);
void append_settings(Buffer& to, std::span<const Setting> settings);
void append_settings_ack(Buffer& to);
/// `data` has 8 bytes.
void append_ping(Buffer& to, std::string_view data, bool is_ack);
/// Streams after `last_stream_id` were not and will not be processed. `debug_data` are for people.
void append_goaway(Buffer& to, std::uint32_t last_stream_id, ErrorCode error,
                   std::string_view debug_data);
/// `increment` is from 1 to window_size_max.
void append_window_update(Buffer& to, std::uint32_t stream_id, std::uint32_t increment);
/// RFC 9218, section 7.1; only for clients. `value` is a priority field value: "u=1, i".
void append_priority_update(Buffer& to, std::uint32_t stream_id, std::string_view value);

/// Writes the head of a frame to `to`, which has room for frame_head_size bytes.
void write_frame_head(std::byte* to, std::uint32_t size, FrameType type, std::uint8_t flags,
                      std::uint32_t stream_id) noexcept;

}  // namespace tambour::http::detail::h2
