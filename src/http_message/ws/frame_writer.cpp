// The writer of frames: headers, masks, and the close frame.
#include "http_message/ws/frame_writer.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "bytes/buffer_memory.h"
#include "http_message/ws/masking.h"
#include "http_message/ws/utf8.h"

namespace tambour::http::detail::ws {
namespace {

/// A payload of at most so many bytes is copied behind the header, so that a frame is one piece of
/// memory. Buffer::append() copies them in any case.
constexpr std::size_t joined_bytes_max = 1024;

/// Of the size that follows the second byte.
std::size_t size_bytes_of(const FrameHeader& header) noexcept {
  return header.payload_bytes < 126 ? 0 : header.payload_bytes < 65536 ? 2 : 8;
}

std::size_t header_bytes_of(const FrameHeader& header) noexcept {
  return 2 + size_bytes_of(header) + (header.mask ? header.mask->size() : 0);
}

/// `target` has header_bytes_of(header).
void write_header(std::span<std::byte> target, const FrameHeader& header) noexcept {
  const auto set = [&](std::size_t at, std::uint64_t value) {
    target[at] = static_cast<std::byte>(value);
  };
  const std::uint64_t size = header.payload_bytes;
  const std::size_t size_bytes = size_bytes_of(header);
  set(0, (header.is_final ? 0x80U : 0U) | (header.is_compressed ? 0x40U : 0U) |
             static_cast<unsigned>(header.opcode));
  set(1, (header.mask ? 0x80U : 0U) | (size_bytes == 0 ? size : size_bytes == 2 ? 126U : 127U));
  for (std::size_t i = 0; i < size_bytes; ++i) set(2 + i, size >> 8 * (size_bytes - 1 - i));
  if (header.mask)
    std::ranges::copy(*header.mask, target.begin() + static_cast<std::ptrdiff_t>(2 + size_bytes));
}

}  // namespace

FrameWriter::FrameWriter(Role role, RandomBytes random) noexcept : random_(random), role_(role) {
  base::check(role == Role::server || random != nullptr,
              "FrameWriter of a client constructed without a source of random bytes: pass one");
}

void FrameWriter::append_message(Buffer& to, Buffer&& payload, const MessageOptions& options) {
  base::check(
      !is_within_message_,
      "FrameWriter::append_message() called within a streamed message: append its last part "
      "first");
  append_part(to, std::move(payload), true, options);
}

/// Called for each message.
[[gnu::flatten]] void FrameWriter::append_part(Buffer& to, Buffer&& payload, bool is_last,
                                               const MessageOptions& options) {
  const std::size_t bytes_max = options.fragment_bytes_max;
  while (bytes_max > 0 && payload.size() > bytes_max)
    append_fragment(to, payload.take(bytes_max), false, options);
  append_fragment(to, std::move(payload), is_last, options);
}

void FrameWriter::append_fragment(Buffer& to, Buffer&& payload, bool is_last,
                                  const MessageOptions& options) {
  FrameHeader header{.opcode = is_within_message_ ? Opcode::continuation : options.opcode,
                     .is_final = is_last,
                     .is_compressed = !is_within_message_ && options.is_compressed,
                     .payload_bytes = payload.size()};
  append_frame(to, header, std::move(payload));
  is_within_message_ = !is_last;
}

/// If it throws, nothing was appended.
void FrameWriter::append_frame(Buffer& to, FrameHeader& header, Buffer&& payload) {
  if (role_ == Role::client) random_(header.mask.emplace());
  const std::size_t payload_bytes = payload.size();
  const std::size_t header_bytes = header_bytes_of(header);
  if (payload_bytes <= joined_bytes_max) {
    const std::span<std::byte> frame =
        tambour::detail::BufferMemory::extend(to, header_bytes + payload_bytes);
    write_header(frame.first(header_bytes), header);
    const std::span<std::byte> bytes = frame.subspan(header_bytes);
    payload.copy_to(bytes);
    if (header.mask) mask_copy(bytes, bytes.data(), *header.mask, 0);
    return payload.clear();
  }
  Buffer frame;
  write_header(tambour::detail::BufferMemory::extend(frame, header_bytes), header);
  if (header.mask) {
    move_masked(payload, frame, payload_bytes, *header.mask, 0, [](std::span<const std::byte>) {});
  } else {
    frame.append(std::move(payload));
  }
  to.append(std::move(frame));
}

Result<> FrameWriter::append_control(Buffer& to, Opcode opcode, std::string_view payload) {
  if (payload.size() > control_bytes_max) return failure(WebSocketError::control_frame_too_large);
  FrameHeader header{.opcode = opcode, .payload_bytes = payload.size()};
  append_frame(to, header, Buffer(payload));
  return {};
}

Result<> FrameWriter::append_ping(Buffer& to, std::string_view payload) {
  return append_control(to, Opcode::ping, payload);
}

Result<> FrameWriter::append_pong(Buffer& to, std::string_view payload) {
  return append_control(to, Opcode::pong, payload);
}

Result<> FrameWriter::append_close(Buffer& to, CloseCode code, std::string_view reason) {
  if (code == CloseCode::no_status && reason.empty()) return append_control(to, Opcode::close, {});
  if (!is_sent(code)) return failure(WebSocketError::bad_close_code);
  if (!is_utf8(reason)) return failure(WebSocketError::invalid_utf8);
  const auto number = static_cast<unsigned>(code);
  std::string payload{static_cast<char>(number >> 8U), static_cast<char>(number)};
  payload += reason;
  return append_control(to, Opcode::close, payload);
}

}  // namespace tambour::http::detail::ws
