// Frames of HTTP/2: arbitrary ones, and those of the library's writers.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/support/frames.h"
#include "http_message/support/frames_reference.h"

namespace tambour::fuzz {
namespace {

using http::detail::h2::Violation;
using test::FramesVerdict;
using Role = http::detail::h2::FrameParser::Role;

constexpr http::detail::h2::FrameLimits limits{.frame_size_max = 300,
                                               .control_frame_size_max = 40,
                                               .continuations_max = 2,
                                               .field_block_bytes_max = 60};

/// A frame of the model.
struct ModelFrame {
  std::size_t size = 0;
  int type = 0;
  int flags = 0;
  std::uint32_t stream = 0;
  std::string payload{};

  [[nodiscard]] bool has(int flag) const { return (flags & flag) != 0; }
};

/// Reads frames that are complete, one after the other, and writes them as test::FramesReader does.
class Model {
 public:
  Model(std::string_view text, bool is_server) : text_(text), is_server_(is_server) {}

  FramesVerdict run() {
    const std::string_view preface = http::detail::h2::client_preface;
    if (is_server_) {
      const std::size_t size = std::min(text_.size(), preface.size());
      if (text_.substr(0, size) != preface.substr(0, size)) return fail(Violation::bad_preface);
      verdict_.is_between_frames = text_.empty();
      if (size < preface.size()) return verdict_;
      verdict_.is_between_frames = false;
      text_.remove_prefix(size);
    }
    while (verdict_.error.empty() && text_.size() >= 9) {
      ModelFrame frame = {
          .size = number(text_, 3),
          .type = static_cast<unsigned char>(text_[3]),
          .flags = static_cast<unsigned char>(text_[4]),
          .stream = static_cast<std::uint32_t>(number(text_.substr(5), 4)) & 0x7FFFFFFF};
      check_head(frame);
      if (!verdict_.error.empty()) break;
      text_.remove_prefix(9);
      frame.payload = text_.substr(0, frame.size);
      is_cut_ = frame.payload.size() < frame.size;
      // DATA is reported as it arrives, and so is the error of its first byte.
      if (is_cut_ && frame.type != 0) return verdict_;
      text_.remove_prefix(frame.payload.size());
      read(frame);
      if (is_cut_) return verdict_;
    }
    verdict_.is_between_frames = verdict_.error.empty() && text_.empty() && block_stream_ == 0;
    return verdict_;
  }

 private:
  static std::size_t number(std::string_view text, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | static_cast<unsigned char>(text[i]);
    return value;
  }
  FramesVerdict fail(Violation violation) {
    verdict_.error = std::string(text_of(violation));
    return verdict_;
  }
  void fail_if(bool is_wrong, Violation violation) {
    if (is_wrong && verdict_.error.empty()) fail(violation);
  }
  void report(const std::string& text) {
    if (verdict_.error.empty()) verdict_.frames.push_back(text);
  }

  void check_head(const ModelFrame& frame) {
    fail_if(!has_settings_ && (frame.type != 4 || frame.has(1)), Violation::no_settings);
    fail_if(frame.size > limits.frame_size_max, Violation::frame_too_large);
    if (block_stream_ != 0) {
      fail_if(frame.type != 9 || frame.stream != block_stream_, Violation::interrupted_field_block);
      fail_if(continuations_ == 2, Violation::too_many_continuations);
    }
    fail_if(block_stream_ == 0 && frame.type == 9, Violation::unexpected_continuation);
    fail_if(frame.type < 4 && frame.stream == 0, Violation::frame_on_connection);
    fail_if(frame.type == 5, Violation::unexpected_push_promise);
    const std::array connection = {4, 6, 7, 16};
    fail_if(std::ranges::find(connection, frame.type) != connection.end() && frame.stream != 0,
            Violation::frame_on_stream);
    const std::size_t block = frame.type == 9 ? block_.size() : 0;
    fail_if((frame.type == 1 || frame.type == 9) && frame.size + block > 60,
            Violation::field_block_too_large);
    fail_if(frame.type == 3 && frame.size != 4, Violation::bad_rst_stream_size);
    fail_if(frame.type == 4 && frame.has(1) && frame.size > 0,
            Violation::settings_ack_with_payload);
    fail_if(frame.type == 4 && frame.size % 6 != 0, Violation::bad_settings_size);
    fail_if(frame.type == 6 && frame.size != 8, Violation::bad_ping_size);
    fail_if(frame.type == 7 && frame.size < 8, Violation::frame_too_short);
    fail_if(frame.type == 8 && frame.size != 4, Violation::bad_window_update_size);
    fail_if(frame.type == 16 && !is_server_, Violation::priority_update_from_server);
    fail_if(frame.type == 16 && frame.size < 4, Violation::frame_too_short);
    const std::array small = {2, 4, 7, 16};
    fail_if(std::ranges::find(small, frame.type) != small.end() && frame.size > 40,
            Violation::control_frame_too_large);
  }

  void read(ModelFrame& frame) {
    const std::string stream = ' ' + std::to_string(frame.stream);
    const std::string& payload = frame.payload;
    if (frame.type == 0) return read_data(frame);
    if (frame.type == 1) return read_headers(frame);
    if (frame.type == 9) return read_continuation(frame);
    if (frame.type == 4) return read_settings(frame);
    if (frame.type == 2 && frame.size != 5) {
      report("stream_error" + stream + ' ' + std::string(text_of(Violation::bad_priority_size)));
    } else if (frame.type == 2) {
      report("priority" + stream + " 5");
    } else if (frame.type == 3) {
      report("rst_stream" + stream + ' ' + std::to_string(number(payload, 4)));
    } else if (frame.type == 6) {
      report("ping 0" + std::string(frame.has(1) ? " ack " : " ") + payload);
    } else if (frame.type == 7) {
      report("goaway 0 " + std::to_string(number(payload, 4) & 0x7FFFFFFF) + ' ' +
             std::to_string(number(payload.substr(4), 4)) + ' ' + payload.substr(8));
    } else if (frame.type == 8) {
      read_window_update(number(payload, 4) & 0x7FFFFFFF, frame.stream);
    } else if (frame.type == 16) {
      const std::size_t prioritized = number(payload, 4) & 0x7FFFFFFF;
      fail_if(prioritized == 0, Violation::bad_prioritized_stream);
      report("priority_update 0 " + std::to_string(prioritized) + ' ' + payload.substr(4));
    } else {
      report("unknown" + stream + ' ' + std::to_string(frame.size));
    }
  }

  void read_window_update(std::size_t increment, std::uint32_t stream) {
    fail_if(increment == 0 && stream == 0, Violation::zero_window_increment);
    if (increment == 0) {
      report("stream_error " + std::to_string(stream) + ' ' +
             std::string(text_of(Violation::zero_window_increment)));
    } else {
      report("window_update " + std::to_string(stream) + ' ' + std::to_string(increment));
    }
  }

  void read_data(const ModelFrame& frame) {
    std::size_t padding = 0;
    std::string data = frame.payload;
    if (frame.has(8)) {
      fail_if(frame.size == 0, Violation::frame_too_short);
      if (data.empty()) return;
      padding = static_cast<unsigned char>(data[0]);
      fail_if(padding > frame.size - 1, Violation::bad_padding);
      if (!verdict_.error.empty()) return;
      data = data.substr(1, frame.size - 1 - padding);
    }
    // A part without data is reported at the end of the frame only.
    if (is_cut_ && data.empty()) return;
    std::string text =
        "data " + std::to_string(frame.stream) + ' ' + std::to_string(frame.size) + ' ' + data;
    if (!is_cut_ && frame.has(1)) text += " end";
    // The last padding of a frame that is cut has not been reported.
    if (!is_cut_) text += " complete";
    report(text);
  }

  void read_headers(const ModelFrame& frame) {
    std::string block = frame.payload;
    std::size_t padding = 0;
    if (frame.has(8)) {
      fail_if(block.empty(), Violation::frame_too_short);
      if (block.empty()) return;
      padding = static_cast<unsigned char>(block[0]);
      block.erase(0, 1);
    }
    if (frame.has(0x20)) {
      fail_if(block.size() < 5, Violation::frame_too_short);
      block.erase(0, 5);
    }
    fail_if(padding > block.size(), Violation::bad_padding);
    if (!verdict_.error.empty()) return;
    block_ = block.substr(0, block.size() - padding);
    block_stream_ = frame.stream;
    continuations_ = 0;
    block_ends_stream_ = frame.has(1);
    end_block(frame);
  }
  void read_continuation(const ModelFrame& frame) {
    block_ += frame.payload;
    ++continuations_;
    end_block(frame);
  }
  void end_block(const ModelFrame& frame) {
    if (!frame.has(4)) return;
    report("headers " + std::to_string(block_stream_) + (block_ends_stream_ ? " end " : " ") +
           block_);
    block_stream_ = 0;
  }

  void read_settings(const ModelFrame& frame) {
    std::string text = "settings 0";
    if (frame.has(1)) text += " ack";
    for (std::size_t at = 0; at < frame.size; at += 6) {
      const std::size_t id = number(frame.payload.substr(at), 2);
      const std::size_t value = number(frame.payload.substr(at + 2), 4);
      fail_if(id == 2 && value > (is_server_ ? 1U : 0U), Violation::bad_enable_push);
      fail_if(id == 4 && value > 0x7FFFFFFF, Violation::bad_initial_window_size);
      fail_if(id == 5 && (value < 16384 || value > 16777215), Violation::bad_frame_size_max);
      fail_if(id == 8 && value > 1, Violation::bad_enable_connect_protocol);
      fail_if(id == 9 && value > 1, Violation::bad_no_rfc7540_priorities);
      text += ' ' + std::to_string(id) + '=' + std::to_string(value);
    }
    has_settings_ = true;
    report(text);
  }

  std::string_view text_;
  bool is_server_;
  bool has_settings_ = false;
  bool is_cut_ = false;
  bool block_ends_stream_ = false;
  std::uint32_t block_stream_ = 0;
  int continuations_ = 0;
  std::string block_;
  FramesVerdict verdict_;
};

/// Reads `text` whole, and in divisions that `bytes` determine.
void check(const std::string& text, Role role, Bytes bytes) {
  const FramesVerdict expected = Model(text, role == Role::server).run();
  const FramesVerdict whole = test::read_frames(text, role, {}, false, limits);
  expect(whole.error == expected.error, "another error: " + whole.error + "; " + expected.error);
  expect(whole.frames == expected.frames, "other frames");
  expect(whole == expected, "another end");
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 20) && !text.empty(); ++i)
    ends.push_back((std::size_t{bytes[i]} * 7 + i * 31) % text.size());
  std::ranges::sort(ends);
  expect(test::read_frames(text, role, ends, false, limits) == whole, "the division matters");
  expect(test::read_frames(text, role, ends, true, limits) == whole, "blocks matter");
}

/// Frames whose heads are mostly plausible; with PING in place of DATA unless `has_data`.
std::string plausible_frames(Bytes bytes, bool has_data = true) {
  Input input(bytes);
  std::string text;
  while (!input.empty() && text.size() < 2000) {
    static constexpr std::array<std::uint8_t, 16> types = {0, 0, 1, 1, 9,  9, 2,  3,
                                                           4, 6, 7, 8, 16, 5, 77, 4};
    static constexpr std::array<std::size_t, 8> sizes = {0, 4, 5, 6, 8, 12, 20, 61};
    int type = types[input.below(types.size())];
    if (type == 0 && !has_data) type = 6;
    std::string payload(sizes[input.below(sizes.size())], '\0');
    for (char& c : payload) c = static_cast<char>(input.below(4) == 0 ? input.byte() : 0);
    text += test::raw_frame(type, static_cast<int>(input.byte()),
                            static_cast<std::uint32_t>(input.below(3)), payload);
  }
  return text;
}

/// What a client may send, with a few frames that are not valid, and DATA only where it belongs.
std::string session_frames(Bytes bytes) {
  Input input(bytes);
  std::string text;
  std::uint32_t stream = 1;  // The last one.
  bool is_open = false;
  const std::string block("\x82\x86\x84\x41\1a", 6);
  while (!input.empty() && text.size() < 2000) {
    const std::size_t kind = input.below(10);
    const int flags = static_cast<int>(input.byte());
    if (kind < 4) {
      stream += 2;
      is_open = (flags & 1) == 0;
    }
    if (kind < 2) {
      // With END_HEADERS, and without padding.
      text += test::raw_frame(1, 4 | (flags & 1), stream, block);
    } else if (kind < 4) {
      const std::size_t cut = input.below(block.size());
      text += test::raw_frame(1, flags & 1, stream, block.substr(0, cut));
      text += test::raw_frame(9, 4, stream, block.substr(cut));
    } else if (kind < 6 && is_open) {
      const std::string padding(input.below(5), '\0');
      text += test::raw_frame(0, flags & 9, stream, std::string(1, '\2') + "data" + padding);
      is_open = (flags & 1) == 0;
    } else if (kind < 8) {
      const std::size_t size = std::min<std::size_t>(bytes.size(), flags % 40);
      text += plausible_frames(bytes.subspan(0, size), false);
    } else {
      static constexpr std::array<std::pair<int, std::size_t>, 6> valid = {
          {{6, 8}, {8, 4}, {4, 12}, {2, 5}, {3, 4}, {7, 8}}};
      const auto [type, size] = valid[input.below(valid.size())];
      std::string payload(size, '\0');
      payload.back() = 4;
      if (type == 3) is_open = false;
      text += test::raw_frame(type, 0, type == 2 || type == 3 ? stream : 0, payload);
    }
  }
  return text;
}

/// The frames of a verdict as test::ReferenceFrames has them, up to the first error of a stream.
std::vector<std::string> heads_of(const FramesVerdict& verdict) {
  static constexpr std::array<std::pair<int, std::string_view>, 8> names = {
      {{0, "data "},
       {1, "headers "},
       {2, "priority "},
       {3, "rst_stream "},
       {4, "settings "},
       {6, "ping "},
       {7, "goaway "},
       {8, "window_update "}}};
  std::vector<std::string> heads;
  for (const std::string& frame : verdict.frames) {
    if (frame.starts_with("stream_error")) break;
    for (const auto& [type, name] : names) {
      if (frame.starts_with(name))
        heads.push_back(std::to_string(type) + ' ' +
                        frame.substr(name.size(), frame.find(' ', name.size()) - name.size()));
    }
  }
  return heads;
}

/// Appends what the last frame lacks, unless it is too large. Returns false if libnghttp2 1.52
/// ignores a frame: PRIORITY_UPDATE, and perhaps DATA, which may belong to a closed stream.
bool complete_frames(std::string& text, bool may_have_data) {
  std::size_t at = http::detail::h2::client_preface.size();
  while (text.size() - at >= 9) {
    if (text[at + 3] == 16 || (text[at + 3] == 0 && !may_have_data)) return false;
    std::size_t size = 9;
    for (std::size_t i = 0; i < 3; ++i)
      size += std::size_t{static_cast<unsigned char>(text[at + i])} << (16 - 8 * i);
    if (size > 9 + 16384) break;
    text.resize(std::max(text.size(), at + size));
    at += size;
  }
  return true;
}

/// libnghttp2 finds the same frames. It rejects more of them, because it knows the streams; those
/// that the parser rejects, it rejects too.
void check_reference(std::string text, bool may_have_data = false) {
  if (!test::has_reference_frames() || !complete_frames(text, may_have_data)) return;
  const FramesVerdict verdict = test::read_frames(text, Role::server);
  const std::vector<std::string> heads = heads_of(verdict);
  const bool has_stream_error = std::ranges::any_of(
      verdict.frames, [](const std::string& frame) { return frame.starts_with("stream_error"); });
  const test::ReferenceFrames reference = test::read_reference_frames(text);
  const std::size_t common = std::min(heads.size(), reference.begun.size());
  expect(std::equal(heads.begin(), heads.begin() + static_cast<std::ptrdiff_t>(common),
                    reference.begun.begin()),
         "libnghttp2 finds other frames");
  expect(heads.size() <= reference.begun.size() || reference.has_rejected,
         "libnghttp2 has ended before");
  // One that the parser has rejected.
  expect(reference.begun.size() <= heads.size() + 1 || has_stream_error,
         "libnghttp2 finds more frames");
  expect((verdict.error.empty() && !has_stream_error) || reference.has_rejected,
         "libnghttp2 does not reject: " + verdict.error);
}

/// Each frame that is written is read again.
void check_writers(Bytes bytes) {
  Input input(bytes);
  Buffer to;
  std::vector<std::string> expected;
  while (!input.empty()) {
    const std::uint32_t stream = input.byte() + 1U;
    const std::string name = std::to_string(stream);
    const std::string text(input.below(40), static_cast<char>(input.byte()));
    switch (input.below(6)) {
      case 0:
        http::detail::h2::append_data(to, stream, Buffer(text), true);
        expected.push_back("data " + name + ' ' + std::to_string(text.size()) + ' ' + text +
                           " end complete");
        break;
      case 1:
        http::detail::h2::append_rst_stream(to, stream, http::detail::h2::ErrorCode(stream));
        expected.push_back("rst_stream " + name + ' ' + name);
        break;
      case 2:
        http::detail::h2::append_window_update(to, 0, stream);
        expected.push_back("window_update 0 " + name);
        break;
      case 3:
        http::detail::h2::append_goaway(to, stream, http::detail::h2::ErrorCode::cancel,
                                        text.substr(0, 20));
        expected.push_back("goaway 0 " + name + " 8 " + text.substr(0, 20));
        break;
      case 4:
        http::detail::h2::append_priority_update(to, stream, text.substr(0, 20));
        expected.push_back("priority_update 0 " + name + ' ' + text.substr(0, 20));
        break;
      default:
        http::detail::h2::append_ping(to, "12345678", true);
        expected.push_back("ping 0 ack 12345678");
        break;
    }
  }
  FramesVerdict verdict = test::read_frames(
      std::string(http::detail::h2::client_preface) + test::raw_frame(4, 0, 0, "") + to.to_string(),
      Role::server, {}, false, limits);
  expect(verdict.error.empty(), verdict.error);
  verdict.frames.erase(verdict.frames.begin());
  expect(verdict.frames == expected, "a frame is read as another");
}

}  // namespace

void check_h2_frames(Bytes bytes) {
  const std::string text(text_of(bytes));
  const std::string preface(http::detail::h2::client_preface);
  const std::string settings = test::raw_frame(4, 0, 0, "");
  check(text, Role::server, bytes);
  check(text, Role::client, bytes);
  check(preface + text, Role::server, bytes);
  check(preface + settings + text, Role::server, bytes);
  check(settings + text, Role::client, bytes);
  check(preface + settings + plausible_frames(bytes), Role::server, bytes);
  check(settings + plausible_frames(bytes), Role::client, bytes);
  check_reference(preface + settings + session_frames(bytes), true);
  check_reference(preface + settings + plausible_frames(bytes));
  check_reference(preface + settings + text);
  check_writers(bytes);
}

}  // namespace tambour::fuzz
