// Writes each frame into memory of the buffer whose size is known before.
#include "http_message/h2/frame_writer.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

namespace tambour::http::detail::h2 {
namespace {

/// A frame, which is appended to the buffer by the destructor.
class FrameWriter {
 public:
  FrameWriter(Buffer& to, std::size_t size, FrameType type, std::uint8_t flags,
              std::uint32_t stream_id)
      : to_(to), begin_(to.prepare(frame_head_size + size).data()), at_(begin_ + frame_head_size) {
    write_frame_head(begin_, static_cast<std::uint32_t>(size), type, flags, stream_id);
  }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;
  ~FrameWriter() { to_.commit(static_cast<std::size_t>(at_ - begin_)); }

  FrameWriter& put_16(std::uint32_t value) noexcept {
    *at_++ = static_cast<std::byte>(value >> 8);
    *at_++ = static_cast<std::byte>(value);
    return *this;
  }
  FrameWriter& put_32(std::uint32_t value) noexcept { return put_16(value >> 16).put_16(value); }
  void put(std::string_view text) noexcept {
    if (text.empty()) return;
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }

 private:
  Buffer& to_;
  std::byte* begin_;
  std::byte* at_;
};

}  // namespace

void write_frame_head(std::byte* to, std::uint32_t size, FrameType type, std::uint8_t flags,
                      std::uint32_t stream_id) noexcept {
  const auto put = [&to](std::uint32_t byte) { *to++ = static_cast<std::byte>(byte); };
  put(size >> 16);
  put(size >> 8);
  put(size);
  put(static_cast<std::uint32_t>(type));
  put(flags);
  put(stream_id >> 24);
  put(stream_id >> 16);
  put(stream_id >> 8);
  put(stream_id);
}

void append_data(Buffer& to, std::uint32_t stream_id, Buffer data, bool end_stream) {
  // The frame is complete before `to` changes. There usually is free space before the data.
  std::byte head[frame_head_size];
  write_frame_head(head, static_cast<std::uint32_t>(data.size()), FrameType::data,
                   end_stream ? flag::end_stream : 0, stream_id);
  data.prepend(std::span<const std::byte>(head));
  to.append(std::move(data));
}

void append_short_data(Buffer& to, std::uint32_t stream_id, const Buffer& data, bool end_stream) {
  const std::size_t size = frame_head_size + data.size();
  const std::span<std::byte> memory = to.prepare(size);
  write_frame_head(memory.data(), static_cast<std::uint32_t>(data.size()), FrameType::data,
                   end_stream ? flag::end_stream : 0, stream_id);
  data.copy_to(memory.subspan(frame_head_size, data.size()));
  to.commit(size);
}

void append_short_data(Buffer& to, std::uint32_t stream_id, std::string_view data,
                       bool end_stream) {
  FrameWriter(to, data.size(), FrameType::data, end_stream ? flag::end_stream : 0, stream_id)
      .put(data);
}

void append_data_head(Buffer& to, std::uint32_t stream_id, std::uint32_t size, bool end_stream) {
  std::byte head[frame_head_size];
  write_frame_head(head, size, FrameType::data, end_stream ? flag::end_stream : 0, stream_id);
  to.append(std::span<const std::byte>(head));
}

void append_rst_stream(Buffer& to, std::uint32_t stream_id, ErrorCode error) {
  FrameWriter(to, 4, FrameType::rst_stream, 0, stream_id).put_32(static_cast<std::uint32_t>(error));
}

void append_settings(Buffer& to, std::span<const Setting> settings) {
  FrameWriter frame(to, setting_size * settings.size(), FrameType::settings, 0, 0);
  for (const Setting setting : settings)
    frame.put_16(static_cast<std::uint16_t>(setting.id)).put_32(setting.value);
}

void append_settings_ack(Buffer& to) {
  const FrameWriter frame(to, 0, FrameType::settings, flag::ack, 0);
}

void append_ping(Buffer& to, std::string_view data, bool is_ack) {
  FrameWriter(to, data.size(), FrameType::ping, is_ack ? flag::ack : 0, 0).put(data);
}

void append_goaway(Buffer& to, std::uint32_t last_stream_id, ErrorCode error,
                   std::string_view debug_data) {
  FrameWriter(to, 8 + debug_data.size(), FrameType::goaway, 0, 0)
      .put_32(last_stream_id)
      .put_32(static_cast<std::uint32_t>(error))
      .put(debug_data);
}

void append_window_update(Buffer& to, std::uint32_t stream_id, std::uint32_t increment) {
  FrameWriter(to, 4, FrameType::window_update, 0, stream_id).put_32(increment);
}

void append_priority_update(Buffer& to, std::uint32_t stream_id, std::string_view value) {
  FrameWriter(to, 4 + value.size(), FrameType::priority_update, 0, 0).put_32(stream_id).put(value);
}

}  // namespace tambour::http::detail::h2
