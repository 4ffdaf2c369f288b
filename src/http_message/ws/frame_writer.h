// Writes frames of the WebSocket protocol: RFC 6455, section 5.
//
// A server's payloads are linked, not copied, so that a message for many connections is serialized
// once: append it to a buffer and send Buffer::slice() of it. A client's payloads are masked in
// place if no other buffer shares them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "http_message/ws/error.h"
#include "http_message/ws/frame.h"

namespace tambour::http::detail::ws {

/// Fills the span with bytes that a third party cannot predict: RFC 6455, section 5.3. Called for
/// each frame of a client.
using RandomBytes = void (*)(std::span<std::byte>);

struct MessageOptions {
  Opcode opcode = Opcode::binary;  ///< `text` or `binary`. The text must be valid UTF-8.
  bool is_compressed = false;
  /// Larger messages are divided into fragments, between which other frames can be sent; 0: never.
  std::size_t fragment_bytes_max = 0;
};

class FrameWriter {
 public:
  /// A writer of a client needs `random`.
  explicit FrameWriter(Role role, RandomBytes random = nullptr) noexcept;

  /// Appends a message. Aborts with a message if a streamed message has not ended. Throws
  /// std::bad_alloc; `to` may then have a part of the message.
  void append_message(Buffer& to, Buffer&& payload, const MessageOptions& options);

  /// Appends a part of a streamed message as one frame or several. The first part after the last
  /// one of another message begins a message with the options; the opcode of later parts is
  /// ignored. Throws like append_message().
  void append_part(Buffer& to, Buffer&& payload, bool is_last, const MessageOptions& options);
  /// True after a part that is not the last one.
  [[nodiscard]] bool is_within_message() const noexcept { return is_within_message_; }

  /// Fail with WebSocketError::control_frame_too_large for more than 125 bytes. Nothing is appended
  /// then. Throw std::bad_alloc.
  Result<> append_ping(Buffer& to, std::string_view payload);
  Result<> append_pong(Buffer& to, std::string_view payload);

  /// Appends a close frame, after which the connection must not send any other; without a code and
  /// reason if `code` is CloseCode::no_status. Fails with WebSocketError::bad_close_code for a code
  /// that is not is_sent(), with invalid_utf8 for such a reason, and with control_frame_too_large
  /// for a reason of more than 123 bytes. Throws std::bad_alloc.
  Result<> append_close(Buffer& to, CloseCode code, std::string_view reason = {});

 private:
  void append_fragment(Buffer& to, Buffer&& payload, bool is_last, const MessageOptions& options);
  void append_frame(Buffer& to, FrameHeader& header, Buffer&& payload);
  Result<> append_control(Buffer& to, Opcode opcode, std::string_view payload);

  RandomBytes random_;
  Role role_;
  bool is_within_message_ = false;
};

}  // namespace tambour::http::detail::ws
