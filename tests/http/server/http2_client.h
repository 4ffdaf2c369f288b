// A client of HTTP/2 that sends what a test says, and prints what it receives.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/tambour.h>

#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/hpack_encoder.h"

namespace tambour::test {

class Http2Client {
 public:
  using ErrorCode = http::detail::h2::ErrorCode;
  using SettingId = http::detail::h2::SettingId;
  using Setting = http::detail::h2::Setting;
  struct FieldText {
    std::string_view name;
    std::string_view value;
  };

  Http2Client(TcpStream stream, std::initializer_list<Setting> settings = {})
      : stream_(std::move(stream)), parser_(http::detail::h2::FrameParser::Role::client) {
    out_.append(http::detail::h2::client_preface);
    http::detail::h2::append_settings(out_, {settings.begin(), settings.size()});
  }

  /// Frames that exchange() will send.
  [[nodiscard]] Buffer& out() noexcept { return out_; }
  [[nodiscard]] TcpStream& stream() noexcept { return stream_; }

  void request(std::uint32_t id, http::Method method, std::string_view target, bool ends,
               std::initializer_list<FieldText> fields = {}, std::string_view protocol = "") {
    http::RequestHead head{.method = method};
    head.target = target;
    head.authority = "a";
    head.scheme = "http";
    if (method == http::Method::connect && protocol.empty())
      head.form = http::TargetForm::authority;
    for (const FieldText& field : fields)
      static_cast<void>(head.fields.add(field.name, field.value));
    or_throw(http::detail::h2::append_head(
        out_, encoder_, head, {.stream_id = id, .end_stream = ends, .protocol = protocol}));
  }
  void get(std::uint32_t id, std::string_view target,
           std::initializer_list<FieldText> fields = {}) {
    request(id, http::Method::get, target, true, fields);
  }
  void data(std::uint32_t id, std::string_view text, bool ends) {
    http::detail::h2::append_data(out_, id, Buffer(text), ends);
  }
  /// `frames` DATA frames of 256 bytes that are only padding.
  void padding(std::uint32_t id, int frames) { append_padding(out_, id, frames); }
  static void append_padding(Buffer& to, std::uint32_t id, int frames) {
    std::string frame(9 + 256, '\0');
    frame[1] = 1;     // The length: 256.
    frame[4] = 0x08;  // PADDED.
    frame[8] = static_cast<char>(id);
    frame[9] = static_cast<char>(255);
    while (frames-- > 0) to.append(frame);
  }
  void trailers(std::uint32_t id, std::initializer_list<FieldText> fields) {
    http::Fields all;
    for (const FieldText& field : fields) static_cast<void>(all.add(field.name, field.value));
    or_throw(http::detail::h2::append_trailers(out_, encoder_, all, {.stream_id = id}));
  }
  void reset(std::uint32_t id, ErrorCode code) {
    http::detail::h2::append_rst_stream(out_, id, code);
  }
  /// By how much the server has enlarged the window of the connection since the last call, its
  /// first enlargement to 1 MiB excluded.
  [[nodiscard]] std::int64_t take_connection_window() {
    constexpr std::int64_t first = 1'048'576 - 65'535;
    const std::int64_t grown = connection_window_ - (has_first_window_ ? 0 : first);
    has_first_window_ = true;
    connection_window_ = 0;
    return grown;
  }
  void grow_window(std::uint32_t id, std::uint32_t bytes) {
    http::detail::h2::append_window_update(out_, id, bytes);
  }

  /// Sends out(), and returns a line for each frame that the server sends until it has been silent
  /// for `patience`, or has closed the connection ("closed"). SETTINGS and PING are
  /// answered. Frames that most connections begin
  /// with are left out: SETTINGS, and WINDOW_UPDATE of the connection.
  Task<std::string> exchange(Duration patience = std::chrono::milliseconds(500)) {
    return exchange(patience, true);
  }
  /// The same, without answers to SETTINGS and PING.
  Task<std::string> exchange_unanswered(Duration patience) { return exchange(patience, false); }

 private:
  Task<std::string> exchange(Duration patience, bool answers) {
    std::string lines;
    static_cast<void>(co_await stream_.write(out_));
    out_.clear();
    for (;;) {
      http::detail::h2::Frame frame;
      for (;;) {
        const auto parsed = parser_.next(in_, frame);
        if (!parsed) co_return lines + "violation: " + std::string(text_of(parsed.error())) + "\n";
        if (!*parsed) break;
        lines += describe(frame);
      }
      if (!answers) out_.clear();
      if (!out_.empty()) static_cast<void>(co_await stream_.write(out_));
      const auto got = co_await timeout(patience, stream_.read(in_));
      if (!got && got.error() == system_error(ETIMEDOUT)) co_return lines;
      if (!got || *got == 0) co_return lines + "closed\n";
    }
  }

  std::string describe(http::detail::h2::Frame& frame) {
    using http::detail::h2::FrameKind;
    const std::string id = std::to_string(frame.stream_id);
    const std::string end = frame.end_stream ? " end\n" : "\n";
    switch (frame.kind) {
      case FrameKind::headers:
        return "HEADERS " + id + describe_block(frame.text) + end;
      case FrameKind::data: {
        // The parser reports a frame as it arrives.
        if (frame.is_first_part) data_.clear();
        data_ += frame.data.to_string();
        if (data_.size() < frame.size) return "";
        const std::string text = data_;
        return "DATA " + id + " " + (text.size() < 50 ? text : std::to_string(text.size())) + end;
      }
      case FrameKind::rst_stream:
        return "RST_STREAM " + id + " " + std::string(name_of(frame.error)) + "\n";
      case FrameKind::goaway:
        return "GOAWAY " + std::to_string(frame.value) + " " + std::string(name_of(frame.error)) +
               "\n";
      case FrameKind::ping:
        if (frame.is_ack) return "PONG\n";
        http::detail::h2::append_ping(out_, frame.text, true);
        return "PING\n";
      case FrameKind::window_update:
        if (frame.stream_id == 0) connection_window_ += frame.value;
        return frame.stream_id == 0 ? ""
                                    : "WINDOW " + id + " " + std::to_string(frame.value) + "\n";
      case FrameKind::settings:
        if (!frame.is_ack) http::detail::h2::append_settings_ack(out_);
        return "";
      default:
        return "OTHER " + id + "\n";
    }
  }

  std::string describe_block(std::string_view block) {
    const http::detail::h2::FieldLimits limits;
    http::detail::h2::FieldSection section(limits, http::detail::h2::SectionKind::unchecked);
    if (!decoder_.decode(block, section)) return " undecodable";
    http::Fields fields;
    section.move_fields_to(fields);
    std::string text;
    for (const http::Field field : fields) {
      if (field.name == ":status") {
        text.append(" ").append(field.value);
      } else if (field.name != "date") {
        text.append(" ").append(field.name).append("=").append(field.value);
      }
    }
    return text;
  }

  TcpStream stream_;
  Buffer in_;
  Buffer out_;
  bool has_first_window_ = false;
  std::int64_t connection_window_ = 0;
  std::string data_;  ///< Of a DATA frame.
  http::detail::h2::FrameParser parser_;
  http::detail::h2::HpackEncoder encoder_;
  http::detail::h2::HpackDecoder decoder_;
};

}  // namespace tambour::test
