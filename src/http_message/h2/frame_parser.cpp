// Parses frames: heads, payloads in one piece, and DATA in parts.
#include "http_message/h2/frame_parser.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace tambour::http::detail::h2 {
namespace {

constexpr std::size_t priority_size = 5;
constexpr std::size_t ping_size = 8;

std::uint32_t read_8(std::string_view text, std::size_t at) noexcept {
  return static_cast<unsigned char>(text[at]);
}
std::uint32_t read_16(std::string_view text, std::size_t at) noexcept {
  return read_8(text, at) << 8 | read_8(text, at + 1);
}
std::uint32_t read_32(std::string_view text, std::size_t at) noexcept {
  return read_16(text, at) << 16 | read_16(text, at + 2);
}
/// Without the reserved bit.
std::uint32_t read_31(std::string_view text, std::size_t at) noexcept {
  return read_32(text, at) & stream_id_max;
}

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first `size` bytes in one piece; fewer if `input` has fewer.
std::string_view peek(Buffer& input, std::size_t size) {
  const std::string_view front = text_of(input.front());
  return front.size() >= size ? front.substr(0, size) : text_of(input.peek(size));
}

std::expected<bool, Violation> error_of_stream(Frame& frame, Violation violation) noexcept {
  frame.kind = FrameKind::stream_error;
  frame.violation = violation;
  return true;
}

bool is_known(std::uint8_t type) noexcept {
  return type <= static_cast<std::uint8_t>(FrameType::continuation) ||
         type == static_cast<std::uint8_t>(FrameType::priority_update);
}

/// The rule that a setting breaks, if any.
std::expected<void, Violation> check_setting(Setting setting, bool is_from_server) noexcept {
  const auto fail_unless = [](bool holds, Violation violation) -> std::expected<void, Violation> {
    if (holds) return {};
    return std::unexpected(violation);
  };
  switch (setting.id) {
    case SettingId::enable_push:
      // A server must not send 1: RFC 9113, section 6.5.2.
      return fail_unless(setting.value <= (is_from_server ? 0U : 1U), Violation::bad_enable_push);
    case SettingId::initial_window_size:
      return fail_unless(setting.value <= window_size_max, Violation::bad_initial_window_size);
    case SettingId::max_frame_size:
      return fail_unless(setting.value >= frame_size_max_min && setting.value <= frame_size_max_max,
                         Violation::bad_frame_size_max);
    case SettingId::enable_connect_protocol:
      return fail_unless(setting.value <= 1, Violation::bad_enable_connect_protocol);
    case SettingId::no_rfc7540_priorities:
      return fail_unless(setting.value <= 1, Violation::bad_no_rfc7540_priorities);
    default:
      return {};
  }
}

}  // namespace

Setting SettingsOf::Iterator::operator*() const noexcept {
  return {.id = static_cast<SettingId>(read_16(rest_, 0)), .value = read_32(rest_, 2)};
}

std::expected<bool, Violation> FrameParser::next(Buffer& input, Frame& frame) {
  if (has_failed_) return std::unexpected(failure_);
  input.consume(consumed_);
  consumed_ = 0;
  if (block_stream_ == 0 && !block_.empty()) block_.clear();
  const auto parsed = parse(input, frame);
  if (!parsed) {
    has_failed_ = true;
    failure_ = parsed.error();
  }
  return parsed;
}

FrameParser::Parsed FrameParser::parse(Buffer& input, Frame& frame) {
  if (expects_preface_) {
    const auto parsed = parse_preface(input);
    if (!parsed || !*parsed) return parsed;
  }
  while (true) {
    if (is_block_complete_) return report_block(frame);
    if (!is_in_payload_) {
      const auto parsed = parse_head(input);
      if (!parsed || !*parsed) return parsed;
    }
    if (head_.type == static_cast<std::uint8_t>(FrameType::data)) return parse_data(input, frame);
    if (!is_known(head_.type)) return skip_unknown(input, frame);
    const std::size_t size = frame_head_size + head_.size;
    if (input.size() < size) return false;
    frame.stream_id = head_.stream_id;
    frame.size = head_.size;
    const Parsed parsed = parse_payload(peek(input, size).substr(frame_head_size), frame);
    if (!parsed) return parsed;
    is_in_payload_ = false;
    if (*parsed) {
      consumed_ = size;  // Later, because the frame may refer to the input.
      return true;
    }
    input.consume(size);
  }
}

FrameParser::Parsed FrameParser::parse_head(Buffer& input) {
  if (input.size() < frame_head_size) return false;
  const std::string_view text = peek(input, frame_head_size);
  const Head head = {.size = read_32(text, 0) >> 8,
                     .type = static_cast<std::uint8_t>(text[3]),
                     .flags = static_cast<std::uint8_t>(text[4]),
                     .stream_id = read_31(text, 5)};
  if (auto checked = check_head(head); !checked) return std::unexpected(checked.error());
  head_ = head;
  is_in_payload_ = true;
  has_padding_size_ = false;
  is_first_part_ = true;
  data_left_ = head.size;
  padding_left_ = 0;
  // The payload of these frames need not be in one piece.
  if (head.type == static_cast<std::uint8_t>(FrameType::data) || !is_known(head.type))
    input.consume(frame_head_size);
  return true;
}

FrameParser::Parsed FrameParser::parse_preface(Buffer& input) noexcept {
  std::array<std::byte, client_preface.size()> bytes;
  const std::size_t size = input.copy_to(bytes);
  if (text_of(std::span(bytes).first(size)) != client_preface.substr(0, size))
    return std::unexpected(Violation::bad_preface);
  if (size < client_preface.size()) return false;
  input.consume(size);
  expects_preface_ = false;
  return true;
}

std::expected<void, Violation> FrameParser::check_head(const Head& head) const noexcept {
  const auto type = static_cast<FrameType>(head.type);
  if (expects_settings_ && (type != FrameType::settings || head.has(flag::ack)))
    return std::unexpected(Violation::no_settings);
  if (head.size > limits_.frame_size_max) return std::unexpected(Violation::frame_too_large);
  if (block_stream_ != 0) {
    if (type != FrameType::continuation || head.stream_id != block_stream_)
      return std::unexpected(Violation::interrupted_field_block);
    if (continuations_ == limits_.continuations_max)
      return std::unexpected(Violation::too_many_continuations);
  } else if (type == FrameType::continuation) {
    return std::unexpected(Violation::unexpected_continuation);
  }
  return check_type(head);
}

std::expected<void, Violation> FrameParser::check_type(const Head& head) const noexcept {
  const bool is_on_connection = head.stream_id == 0;
  switch (static_cast<FrameType>(head.type)) {
    case FrameType::data:
      if (is_on_connection) return std::unexpected(Violation::frame_on_connection);
      return {};
    case FrameType::headers:
    case FrameType::continuation:
      if (is_on_connection) return std::unexpected(Violation::frame_on_connection);
      if (head.size > limits_.field_block_bytes_max -
                          std::min<std::size_t>(block_.size(), limits_.field_block_bytes_max))
        return std::unexpected(Violation::field_block_too_large);
      return {};
    case FrameType::priority:
      if (is_on_connection) return std::unexpected(Violation::frame_on_connection);
      break;
    case FrameType::rst_stream:
      if (is_on_connection) return std::unexpected(Violation::frame_on_connection);
      if (head.size != 4) return std::unexpected(Violation::bad_rst_stream_size);
      return {};
    case FrameType::settings:
      if (!is_on_connection) return std::unexpected(Violation::frame_on_stream);
      if (head.has(flag::ack) && head.size != 0)
        return std::unexpected(Violation::settings_ack_with_payload);
      if (head.size % setting_size != 0) return std::unexpected(Violation::bad_settings_size);
      break;
    case FrameType::push_promise:
      return std::unexpected(Violation::unexpected_push_promise);
    case FrameType::ping:
      if (!is_on_connection) return std::unexpected(Violation::frame_on_stream);
      if (head.size != ping_size) return std::unexpected(Violation::bad_ping_size);
      return {};
    case FrameType::goaway:
      if (!is_on_connection) return std::unexpected(Violation::frame_on_stream);
      if (head.size < 8) return std::unexpected(Violation::frame_too_short);
      break;
    case FrameType::window_update:
      if (head.size != 4) return std::unexpected(Violation::bad_window_update_size);
      return {};
    case FrameType::priority_update:
      if (!is_on_connection) return std::unexpected(Violation::frame_on_stream);
      if (role_ == Role::client) return std::unexpected(Violation::priority_update_from_server);
      if (head.size < 4) return std::unexpected(Violation::frame_too_short);
      break;
    default:
      return {};
  }
  if (head.size > limits_.control_frame_size_max)
    return std::unexpected(Violation::control_frame_too_large);
  return {};
}

std::expected<void, Violation> FrameParser::read_padding_size(Buffer& input) noexcept {
  has_padding_size_ = true;
  padding_left_ = static_cast<std::uint8_t>(input.front()[0]);
  input.consume(1);
  unreported_ = 1;
  --data_left_;
  if (padding_left_ > data_left_) return std::unexpected(Violation::bad_padding);
  data_left_ -= padding_left_;
  return {};
}

void FrameParser::skip_padding(Buffer& input) noexcept {
  const auto skipped =
      static_cast<std::uint32_t>(std::min<std::size_t>(padding_left_, input.size()));
  input.consume(skipped);
  padding_left_ -= skipped;
  unreported_ += skipped;
}

FrameParser::Parsed FrameParser::parse_data(Buffer& input, Frame& frame) {
  if (head_.has(flag::padded) && !has_padding_size_) {
    if (head_.size == 0) return std::unexpected(Violation::frame_too_short);
    if (input.empty()) return false;
    if (auto read = read_padding_size(input); !read) return std::unexpected(read.error());
  }
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(data_left_, input.size()));
  frame.data = input.take(size);
  data_left_ -= size;
  if (data_left_ == 0) skip_padding(input);
  const bool is_complete = data_left_ + padding_left_ == 0;
  if (size == 0 && !is_complete) return false;
  frame.kind = FrameKind::data;
  frame.stream_id = head_.stream_id;
  frame.size = head_.size;
  frame.flow_bytes = size + std::exchange(unreported_, 0);
  frame.is_first_part = std::exchange(is_first_part_, false);
  frame.end_stream = is_complete && head_.has(flag::end_stream);
  is_in_payload_ = !is_complete;
  return true;
}

FrameParser::Parsed FrameParser::skip_unknown(Buffer& input, Frame& frame) noexcept {
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(data_left_, input.size()));
  input.consume(size);
  data_left_ -= size;
  if (data_left_ > 0) return false;
  is_in_payload_ = false;
  frame.kind = FrameKind::unknown;
  frame.stream_id = head_.stream_id;
  frame.size = head_.size;
  return true;
}

FrameParser::Parsed FrameParser::parse_payload(std::string_view payload, Frame& frame) {
  frame.text = payload;
  frame.is_ack = false;
  frame.depends_on_itself = false;
  switch (static_cast<FrameType>(head_.type)) {
    case FrameType::headers:
      return parse_headers(payload, frame);
    case FrameType::continuation:
      return parse_continuation(payload);
    case FrameType::priority:
      if (payload.size() != priority_size)
        return error_of_stream(frame, Violation::bad_priority_size);
      frame.kind = FrameKind::priority;
      frame.depends_on_itself = read_31(payload, 0) == head_.stream_id;
      return true;
    case FrameType::rst_stream:
      frame.kind = FrameKind::rst_stream;
      frame.error = static_cast<ErrorCode>(read_32(payload, 0));
      return true;
    case FrameType::settings: {
      const Parsed parsed = parse_settings(payload, frame);
      if (parsed) expects_settings_ = false;
      return parsed;
    }
    case FrameType::ping:
      frame.kind = FrameKind::ping;
      frame.is_ack = head_.has(flag::ack);
      return true;
    case FrameType::goaway:
      return parse_goaway(payload, frame);
    case FrameType::window_update:
      return parse_window_update(payload, frame);
    default:
      return parse_priority_update(payload, frame);
  }
}

FrameParser::Parsed FrameParser::parse_headers(std::string_view payload, Frame& frame) {
  std::size_t padding = 0;
  if (head_.has(flag::padded)) {
    if (payload.empty()) return std::unexpected(Violation::frame_too_short);
    padding = static_cast<unsigned char>(payload[0]);
    payload.remove_prefix(1);
  }
  if (head_.has(flag::priority)) {
    if (payload.size() < priority_size) return std::unexpected(Violation::frame_too_short);
    frame.depends_on_itself = read_31(payload, 0) == head_.stream_id;
    payload.remove_prefix(priority_size);
  }
  if (padding > payload.size()) return std::unexpected(Violation::bad_padding);
  payload.remove_suffix(padding);
  const bool is_last = head_.has(flag::end_headers);
  const bool ends_stream = head_.has(flag::end_stream);
  if (is_last) {
    frame.kind = FrameKind::headers;
    frame.end_stream = ends_stream;
    frame.text = payload;
    frame.size = static_cast<std::uint32_t>(payload.size());
    return true;
  }
  block_.append(payload);
  block_ends_stream_ = ends_stream;
  block_depends_on_itself_ = frame.depends_on_itself;
  block_stream_ = head_.stream_id;
  continuations_ = 0;
  return false;
}

FrameParser::Parsed FrameParser::parse_continuation(std::string_view payload) {
  block_.append(payload);
  ++continuations_;
  // The block is reported after the frame has left the input: it must not be appended again if
  // memory is exhausted then.
  is_block_complete_ = head_.has(flag::end_headers);
  return false;
}

bool FrameParser::report_block(Frame& frame) {
  frame.depends_on_itself = block_depends_on_itself_;
  frame.text = block_.coalesce();
  frame.kind = FrameKind::headers;
  frame.stream_id = std::exchange(block_stream_, 0);
  frame.end_stream = block_ends_stream_;
  frame.size = static_cast<std::uint32_t>(frame.text.size());
  is_block_complete_ = false;
  return true;
}

FrameParser::Parsed FrameParser::parse_settings(std::string_view payload,
                                                Frame& frame) const noexcept {
  frame.kind = FrameKind::settings;
  frame.is_ack = head_.has(flag::ack);
  for (const Setting setting : SettingsOf(payload)) {
    if (auto checked = check_setting(setting, role_ == Role::client); !checked)
      return std::unexpected(checked.error());
  }
  return true;
}

FrameParser::Parsed FrameParser::parse_goaway(std::string_view payload,
                                              Frame& frame) const noexcept {
  frame.kind = FrameKind::goaway;
  frame.value = read_31(payload, 0);
  frame.error = static_cast<ErrorCode>(read_32(payload, 4));
  frame.text = payload.substr(8);
  return true;
}

FrameParser::Parsed FrameParser::parse_window_update(std::string_view payload,
                                                     Frame& frame) const noexcept {
  frame.kind = FrameKind::window_update;
  frame.value = read_31(payload, 0);
  if (frame.value > 0) return true;
  if (head_.stream_id == 0) return std::unexpected(Violation::zero_window_increment);
  return error_of_stream(frame, Violation::zero_window_increment);
}

FrameParser::Parsed FrameParser::parse_priority_update(std::string_view payload,
                                                       Frame& frame) const noexcept {
  frame.kind = FrameKind::priority_update;
  frame.value = read_31(payload, 0);
  if (frame.value == 0) return std::unexpected(Violation::bad_prioritized_stream);
  frame.text = payload.substr(4);
  return true;
}

}  // namespace tambour::http::detail::h2
