// Parses frames of the WebSocket protocol into messages and control frames: RFC 6455, section 5.
//
// The input may be divided anywhere. Payloads are moved from the input to the caller's buffer, and
// masked ones unmasked on the way: in place if the block is large and no other buffer shares it.
// Text that is not compressed is validated as it arrives; the caller validates the text that it
// decompresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "http_message/ws/error.h"
#include "http_message/ws/frame.h"
#include "http_message/ws/utf8.h"

namespace tambour::http::detail::ws {

/// Limits of received frames. The errors of the first three close a connection with 1009.
struct FrameLimits {
  std::uint64_t frame_bytes_max = std::uint64_t{1} * 1024 * 1024;
  /// Of all fragments of a message, as they were sent: the limit of a decompressed message is
  /// another one.
  std::uint64_t message_bytes_max = std::uint64_t{1} * 1024 * 1024;
  /// Of one message, empty ones included.
  std::uint32_t fragments_max = 4096;
  /// Pings and pongs without data of a message between them: see restart_control_frames(). The
  /// error closes a connection with 1008.
  std::uint32_t control_frames_max = 1000;
};

class FrameParser {
 public:
  enum class Event : std::uint8_t {
    none,         ///< More input is needed.
    data,         ///< A part of a message was appended to the payload; another part will follow.
    message_end,  ///< The last part of a message, which may be empty, was appended.
    ping,         ///< control_payload() has its payload.
    pong,         ///< The same.
    close,        ///< close_code() and control_payload(), which has the reason.
  };

  /// `role` is that of this end: a server requires masked frames, a client rejects them. With
  /// `allows_compressed`, messages may have RSV1. `limits` must outlive the parser.
  FrameParser(Role role, const FrameLimits& limits, bool allows_compressed = false) noexcept
      : limits_(&limits), role_(role), allows_compressed_(allows_compressed) {}

  /// Parses bytes of `input`, which are removed, until an event, and appends at most `bytes_max`
  /// bytes of a message to `payload`. After Event::close, the input is discarded.
  /// Fails with the errors of frames in WebSocketError; an error is final. Throws std::bad_alloc,
  /// after which the parser cannot be used any more.
  [[nodiscard]] Result<Event> parse(
      Buffer& input, Buffer& payload,
      std::size_t bytes_max = std::numeric_limits<std::size_t>::max());

  /// The message of the last event `data` or `message_end`.
  [[nodiscard]] bool is_text() const noexcept { return is_text_; }
  [[nodiscard]] bool is_compressed() const noexcept { return is_compressed_; }
  /// True from the first frame of a message to its end.
  [[nodiscard]] bool is_within_message() const noexcept { return is_within_message_; }

  /// Of the last event `ping`, `pong` or `close`.
  [[nodiscard]] const std::string& control_payload() const noexcept { return control_payload_; }
  /// Of the event `close`; CloseCode::no_status if the frame was empty.
  [[nodiscard]] CloseCode close_code() const noexcept { return close_code_; }
  [[nodiscard]] bool is_closed() const noexcept { return stage_ == Stage::closed; }

  /// Begins to count control frames anew. To be called at intervals, since a connection without
  /// messages may last, and answer pings, for any time.
  void restart_control_frames() noexcept { control_frames_ = 0; }

 private:
  enum class Stage : std::uint8_t { header, payload, closed, failed };

  // These call fail() at the first error.

  [[nodiscard]] Event parse_event(Buffer& input, Buffer& payload, std::size_t bytes_max);
  /// Returns the size of the header, which is still in the input; 0 if it is incomplete or invalid.
  [[nodiscard]] std::size_t parse_header(const Buffer& input);
  [[nodiscard]] bool check_first_byte(std::uint8_t byte) noexcept;
  [[nodiscard]] bool check_second_byte(std::uint8_t byte) noexcept;
  [[nodiscard]] bool begin_data_frame() noexcept;
  [[nodiscard]] bool begin_control_frame() noexcept;
  void move_data(Buffer& input, std::size_t header_bytes, Buffer& payload, std::size_t size);
  [[nodiscard]] Event read_control_frame(Buffer& input);
  [[nodiscard]] bool read_close();

  /// Nothing is parsed any more. Returns false.
  bool fail(WebSocketError error) noexcept;

  const FrameLimits* limits_;
  std::uint64_t left_ = 0;           ///< Of the payload of the current frame.
  std::uint64_t message_bytes_ = 0;  ///< Of the frames so far, including the current one.
  FrameHeader header_{};             ///< Of the current frame.
  std::uint32_t fragments_ = 0;
  std::uint32_t control_frames_ = 0;
  std::string control_payload_;
  WebSocketError error_{};  ///< If the stage is `failed`.
  CloseCode close_code_ = CloseCode::no_status;
  Utf8Validator validator_;
  Role role_;
  bool allows_compressed_;
  bool is_text_ = false;
  bool is_compressed_ = false;
  bool is_within_message_ = false;
  Stage stage_ = Stage::header;
};

}  // namespace tambour::http::detail::ws
