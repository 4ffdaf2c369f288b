// Parses the frames that a peer sends: RFC 9113.
//
// The parser checks what can be known from the frames alone: sizes, flags, padding, the order of
// HEADERS and CONTINUATION, values of settings. States of streams and windows belong to the
// connection. The result does not depend on how the bytes arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "http_message/h2/frame.h"
#include "http_message/h2/violation.h"

namespace tambour::http::detail::h2 {

enum class FrameKind : std::uint8_t {
  /// A part of a DATA frame: `data`, `flow_bytes`, `end_stream`, `is_first_part`, `size`.
  data,
  /// HEADERS and all CONTINUATION that follow it: `text` is the field block; `end_stream`, `size`.
  headers,
  settings,       ///< `text` for settings_of(); or `is_ack`.
  ping,           ///< `text` has 8 bytes; `is_ack`.
  goaway,         ///< `value` is the last stream, `error` the code, `text` the debug data.
  window_update,  ///< `value` is the increment; the stream may be 0.
  rst_stream,     ///< `error`.
  /// Of RFC 7540, without a meaning. An endpoint may limit how many it accepts.
  priority,
  /// RFC 9218: `value` is the prioritized stream, `text` the priority field value.
  priority_update,
  /// A frame of an unknown type, which has been ignored; `size`.
  unknown,
  /// A frame that breaks a rule which concerns only its stream: `violation`. It has been ignored.
  stream_error,
};

/// A frame, or a part of one. FrameKind says which members are meaningful.
struct Frame {
  FrameKind kind = FrameKind::unknown;
  bool end_stream = false;
  bool is_ack = false;
  bool is_first_part = false;  ///< The DATA frame begins with this part.
  /// Of HEADERS and PRIORITY: the stream depends on itself, which RFC 7540, section 5.3.1, forbids.
  bool depends_on_itself = false;
  Violation violation{};
  ErrorCode error{};
  std::uint32_t stream_id = 0;  ///< 0: the connection.
  std::uint32_t value = 0;
  std::uint32_t size = 0;  ///< Of the payload; of a field block.
  /// What the part counts for the windows of flow control: data and padding.
  std::uint32_t flow_bytes = 0;
  /// Refers to the input or to the parser: valid until one of them changes.
  std::string_view text{};
  Buffer data{};
};

struct FrameLimits {
  /// SETTINGS_MAX_FRAME_SIZE.
  std::uint32_t frame_size_max = frame_size_max_min;
  /// Of a frame of another type than DATA, HEADERS, CONTINUATION and unknown ones.
  std::uint32_t control_frame_size_max = 16384;
  std::uint32_t continuations_max = 8;
  /// Of the encoded fields of a message. HpackDecoder and FieldLimits limit the decoded ones.
  std::uint32_t field_block_bytes_max = 160 * 1024;
};

class FrameParser {
 public:
  enum class Role : std::uint8_t { server, client };

  /// `role` is that of this endpoint. A server expects the client preface first. The first frame
  /// must be SETTINGS in either direction.
  explicit FrameParser(Role role, const FrameLimits& limits = {}) noexcept
      : limits_(limits), role_(role), expects_preface_(role == Role::server) {}
  FrameParser(const FrameParser&) = delete;
  FrameParser& operator=(const FrameParser&) = delete;

  /// Removes the next frame from `input`, or a part of it, and sets `frame`. Returns false if more
  /// input is needed. DATA is moved to `frame.data` as it arrives, without copying large parts. The
  /// bytes of other frames leave `input` with the next call: between two calls, `input` must not be
  /// changed while `frame.text` is used.
  ///
  /// An error ends the connection; each further call fails with the same error. Throws
  /// std::bad_alloc; the call may then be repeated.
  [[nodiscard]] std::expected<bool, Violation> next(Buffer& input, Frame& frame);

  /// Call it when the peer has acknowledged another SETTINGS_MAX_FRAME_SIZE, or before it is sent
  /// if it is larger.
  void set_frame_size_max(std::uint32_t bytes) noexcept { limits_.frame_size_max = bytes; }

  /// True if the input may end here without cutting a frame or a field block: RFC 9113 does not
  /// require GOAWAY. `input` is what next() could not use.
  [[nodiscard]] bool is_between_frames(const Buffer& input) const noexcept {
    return !is_in_payload_ && block_stream_ == 0 && !is_block_complete_ &&
           input.size() == consumed_;
  }

 private:
  struct Head {
    std::uint32_t size = 0;
    std::uint8_t type = 0;
    std::uint8_t flags = 0;
    std::uint32_t stream_id = 0;

    [[nodiscard]] bool has(std::uint8_t wanted) const noexcept { return (flags & wanted) != 0; }
  };
  /// True: `frame` is to be reported. False: more input is needed, or nothing is to be reported.
  using Parsed = std::expected<bool, Violation>;

  [[nodiscard]] Parsed parse(Buffer& input, Frame& frame);
  [[nodiscard]] Parsed parse_head(Buffer& input);
  [[nodiscard]] Parsed parse_preface(Buffer& input) noexcept;
  [[nodiscard]] std::expected<void, Violation> check_head(const Head& head) const noexcept;
  [[nodiscard]] std::expected<void, Violation> check_type(const Head& head) const noexcept;
  [[nodiscard]] std::expected<void, Violation> read_padding_size(Buffer& input) noexcept;
  void skip_padding(Buffer& input) noexcept;
  [[nodiscard]] bool report_block(Frame& frame);
  [[nodiscard]] Parsed parse_data(Buffer& input, Frame& frame);
  [[nodiscard]] Parsed skip_unknown(Buffer& input, Frame& frame) noexcept;
  [[nodiscard]] Parsed parse_payload(std::string_view payload, Frame& frame);
  [[nodiscard]] Parsed parse_headers(std::string_view payload, Frame& frame);
  [[nodiscard]] Parsed parse_continuation(std::string_view payload);
  [[nodiscard]] Parsed parse_settings(std::string_view payload, Frame& frame) const noexcept;
  [[nodiscard]] Parsed parse_goaway(std::string_view payload, Frame& frame) const noexcept;
  [[nodiscard]] Parsed parse_window_update(std::string_view payload, Frame& frame) const noexcept;
  [[nodiscard]] Parsed parse_priority_update(std::string_view payload, Frame& frame) const noexcept;

  FrameLimits limits_;
  Role role_;
  bool expects_preface_;
  bool expects_settings_ = true;
  bool is_in_payload_ = false;  ///< `head_` is that of a frame whose payload is incomplete.
  bool has_padding_size_ = false;
  bool is_first_part_ = false;
  bool has_failed_ = false;
  bool block_ends_stream_ = false;
  bool block_depends_on_itself_ = false;
  bool is_block_complete_ = false;  ///< And has not been reported.
  Violation failure_{};
  Head head_;
  std::uint32_t data_left_ = 0;
  std::uint32_t padding_left_ = 0;
  std::uint32_t unreported_ = 0;    ///< Padding that was removed from the input.
  std::uint32_t block_stream_ = 0;  ///< The stream whose field block is incomplete, or 0.
  std::uint32_t continuations_ = 0;
  std::size_t consumed_ = 0;  ///< The bytes of the last frame, which are still in the input.
  Buffer block_;              ///< The fragments of a field block.
};

/// The settings of a frame of the kind `settings`, in the order in which they must be applied.
/// Their values are valid; unknown settings are included, and must be ignored.
class SettingsOf {
 public:
  class Iterator {
   public:
    explicit Iterator(std::string_view rest) noexcept : rest_(rest) {}
    [[nodiscard]] Setting operator*() const noexcept;
    Iterator& operator++() noexcept {
      rest_.remove_prefix(setting_size);
      return *this;
    }
    bool operator==(const Iterator& other) const noexcept {
      return rest_.size() == other.rest_.size();
    }

   private:
    std::string_view rest_;
  };

  explicit SettingsOf(std::string_view payload) noexcept : payload_(payload) {}
  [[nodiscard]] Iterator begin() const noexcept { return Iterator(payload_); }
  [[nodiscard]] Iterator end() const noexcept { return Iterator({}); }
  [[nodiscard]] std::size_t size() const noexcept { return payload_.size() / setting_size; }

 private:
  std::string_view payload_;
};

[[nodiscard]] inline SettingsOf settings_of(const Frame& frame) noexcept {
  return SettingsOf(frame.text);
}

}  // namespace tambour::http::detail::h2
