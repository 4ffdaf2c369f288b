// Reads all frames in a text with the library's parser, in any division into pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/bytes/buffer.h>

#include "http_message/h2/frame_parser.h"

namespace tambour::test {

/// All frames, and the error at the end, or an empty text.
struct FramesVerdict {
  std::vector<std::string> frames{};
  std::string error{};
  bool is_between_frames = false;

  bool operator==(const FramesVerdict&) const = default;
};

inline void PrintTo(const FramesVerdict& verdict,
                    std::ostream* out) {  // NOLINT: GoogleTest's name.
  for (const std::string& frame : verdict.frames) *out << frame << '\n';
  *out << "error: " << verdict.error << ", between frames: " << verdict.is_between_frames;
}

class FramesReader {
 public:
  explicit FramesReader(http::detail::h2::FrameParser::Role role,
                        const http::detail::h2::FrameLimits& limits = {})
      : parser_(role, limits) {}

  /// The piece has a block of its own if `in_block`.
  void add(std::string_view piece, bool in_block = false) {
    if (in_block) {
      auto copy = std::make_shared<std::string>(piece);
      const auto bytes = std::as_bytes(std::span(*copy));
      input_.append_shared(bytes, std::move(copy));
    } else {
      input_.append(piece);
    }
    http::detail::h2::Frame frame;
    while (verdict_.error.empty()) {
      const auto parsed = parser_.next(input_, frame);
      if (!parsed) verdict_.error = std::string(text_of(parsed.error()));
      if (!parsed || !*parsed) break;
      add(frame);
    }
  }

  [[nodiscard]] FramesVerdict finish() {
    verdict_.is_between_frames = verdict_.error.empty() && parser_.is_between_frames(input_);
    flush();
    return verdict_;
  }

 private:
  void add(http::detail::h2::Frame& frame) {
    using http::detail::h2::FrameKind;
    if (frame.kind == FrameKind::data) {
      add_data(frame);
      return;
    }
    flush();
    std::string text = name_of(frame.kind) + " " + std::to_string(frame.stream_id);
    switch (frame.kind) {
      case FrameKind::headers:
        text += (frame.end_stream ? " end " : " ") + std::string(frame.text);
        break;
      case FrameKind::settings:
        text += frame.is_ack ? " ack" : "";
        for (const http::detail::h2::Setting setting : settings_of(frame))
          text += ' ' + std::to_string(static_cast<int>(setting.id)) + '=' +
                  std::to_string(setting.value);
        break;
      case FrameKind::ping:
        text += (frame.is_ack ? " ack " : " ") + std::string(frame.text);
        break;
      case FrameKind::goaway:
        text += ' ' + std::to_string(frame.value) + ' ' +
                std::to_string(static_cast<unsigned>(frame.error)) + ' ' + std::string(frame.text);
        break;
      case FrameKind::window_update:
        text += ' ' + std::to_string(frame.value);
        break;
      case FrameKind::rst_stream:
        text += ' ' + std::to_string(static_cast<unsigned>(frame.error));
        break;
      case FrameKind::priority_update:
        text += ' ' + std::to_string(frame.value) + ' ' + std::string(frame.text);
        break;
      case FrameKind::stream_error:
        text += ' ' + std::string(text_of(frame.violation));
        break;
      default:
        text += ' ' + std::to_string(frame.size);
        break;
    }
    verdict_.frames.push_back(text);
  }

  void add_data(http::detail::h2::Frame& frame) {
    if (frame.is_first_part) {
      flush();
      data_ = "data " + std::to_string(frame.stream_id) + ' ' + std::to_string(frame.size) + ' ';
      flow_bytes_ = 0;
    }
    data_ += frame.data.to_string();
    flow_bytes_ += frame.flow_bytes;
    if (frame.end_stream) data_ += " end";
    if (flow_bytes_ == frame.size) data_ += " complete";
  }
  void flush() {
    if (!data_.empty()) verdict_.frames.push_back(std::exchange(data_, {}));
  }

  static std::string name_of(http::detail::h2::FrameKind kind) {
    using enum http::detail::h2::FrameKind;
    switch (kind) {
      case headers:
        return "headers";
      case settings:
        return "settings";
      case ping:
        return "ping";
      case goaway:
        return "goaway";
      case window_update:
        return "window_update";
      case rst_stream:
        return "rst_stream";
      case priority:
        return "priority";
      case priority_update:
        return "priority_update";
      case stream_error:
        return "stream_error";
      default:
        return "unknown";
    }
  }

  http::detail::h2::FrameParser parser_;
  Buffer input_;
  std::string data_;
  std::uint32_t flow_bytes_ = 0;
  FramesVerdict verdict_;
};

/// Reads `text` in pieces of which each ends at one of `ends`, and one more.
inline FramesVerdict read_frames(std::string_view text, http::detail::h2::FrameParser::Role role,
                                 const std::vector<std::size_t>& ends = {}, bool in_blocks = false,
                                 const http::detail::h2::FrameLimits& limits = {}) {
  FramesReader reader(role, limits);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    reader.add(text.substr(begin, end - begin), in_blocks);
    begin = end;
  }
  reader.add(text.substr(begin), in_blocks);
  return reader.finish();
}

/// A frame of any content.
inline std::string raw_frame(int type, int flags, std::uint32_t stream_id,
                             std::string_view payload) {
  std::string frame;
  const auto put = [&frame](std::uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) frame += static_cast<char>(value >> (8 * i));
  };
  put(static_cast<std::uint32_t>(payload.size()), 3);
  put(static_cast<std::uint32_t>(type), 1);
  put(static_cast<std::uint32_t>(flags), 1);
  put(stream_id, 4);
  return frame.append(payload);
}

}  // namespace tambour::test
