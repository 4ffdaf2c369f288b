// H2ClientConnection: what each kind of frame causes. Functions return false if the connection must
// end.
#include <cerrno>
#include <utility>

#include "http/h2/client_connection.h"
#include "http_message/failure.h"
#include "http_message/h2/field_section.h"
#include "http_message/h2/frame_writer.h"

namespace tambour::http {
namespace {

namespace h2 = detail::h2;

}  // namespace

bool H2ClientConnection::handle(h2::Frame& frame) {
  switch (frame.kind) {
    case h2::FrameKind::data:
      return on_data(frame);
    case h2::FrameKind::headers:
      return on_headers(frame);
    case h2::FrameKind::settings:
      return spend_idle_frame() && on_settings(frame);
    case h2::FrameKind::ping:
      return on_ping(frame);
    case h2::FrameKind::goaway:
      return spend_idle_frame() && on_goaway(frame);
    case h2::FrameKind::window_update:
      return spend_idle_frame() && on_window_update(frame);
    case h2::FrameKind::rst_stream:
      return on_rst_stream(frame);
    case h2::FrameKind::priority:
    case h2::FrameKind::priority_update:
    case h2::FrameKind::unknown:
      return spend_idle_frame();
    case h2::FrameKind::stream_error:
      if (is_idle_stream(frame.stream_id)) return fail(frame.violation);
      if (H2ClientStream* const stream = find(frame.stream_id))
        reset(*stream, code_of(frame.violation), failure(ErrorCode::http_2_violation).error());
      return spend_idle_frame();
  }
  return true;
}

bool H2ClientConnection::spend_idle_frame() noexcept {
  if (frame_budget_.spend(loop_.now(), sender_.take_data_frames())) return true;
  return fail(h2::ErrorCode::enhance_your_calm, "Too many frames that advance no request");
}

bool H2ClientConnection::on_data(h2::Frame& frame) {
  receive_window_ -= frame.flow_bytes;
  unused_bytes_ += frame.flow_bytes;
  if (receive_window_ < 0)
    return fail(h2::ErrorCode::flow_control_error, "DATA exceeds the window of the connection");
  if (is_idle_stream(frame.stream_id))
    return fail(h2::ErrorCode::protocol_error, "DATA of a stream that was not opened");
  if (frame.data.empty() && !frame.end_stream && !spend_idle_frame()) return false;
  if (!frame.data.empty()) frame_budget_.data_received();
  measure_window(frame.flow_bytes);
  H2ClientStream* const stream = find(frame.stream_id);
  if (stream == nullptr) {
    discard(frame.flow_bytes);  // Of a stream that this end has reset.
    return true;
  }
  const auto received = stream->on_data(std::move(frame.data), frame.flow_bytes, frame.end_stream);
  if (!received)
    reset(*stream, h2::ErrorCode::protocol_error, failure(ErrorCode::http_2_violation).error());
  return true;
}

bool H2ClientConnection::on_headers(const h2::Frame& frame) {
  // Each block changes the state of the decoder, also one that is not wanted.
  h2::FieldSection section(field_limits_);
  if (const auto decoded = decoder_.decode(frame.text, section); !decoded)
    return fail(decoded.error());
  if (is_idle_stream(frame.stream_id))
    return fail(h2::ErrorCode::protocol_error, "HEADERS of a stream that was not opened");
  H2ClientStream* const stream = find(frame.stream_id);
  if (stream == nullptr) return spend_idle_frame();
  if (section.is_too_large()) {
    reset(*stream, h2::ErrorCode::cancel, failure(ErrorCode::fields_too_large).error());
    return true;
  }
  frame_budget_.message_received();
  const auto received = stream->on_headers(section, frame.end_stream);
  if (!received)
    reset(*stream, h2::ErrorCode::protocol_error, failure(ErrorCode::http_2_violation).error());
  return true;
}

bool H2ClientConnection::on_settings(const h2::Frame& frame) {
  if (frame.is_ack) return true;
  for (const h2::Setting setting : settings_of(frame)) {
    if (!sender_.apply(setting, streams_))
      return fail(h2::ErrorCode::flow_control_error, "SETTINGS makes a window too large");
    if (setting.id == h2::SettingId::max_concurrent_streams) peer_streams_max_ = setting.value;
    if (setting.id == h2::SettingId::enable_connect_protocol)
      allows_connect_protocol_ = setting.value == 1;
  }
  h2::append_settings_ack(sender_.queue());
  settings_arrived_.set();
  changed_();
  return true;
}

bool H2ClientConnection::on_ping(const h2::Frame& frame) {
  if (!frame_budget_.take_answer(frame.is_ack) && !spend_idle_frame()) return false;
  if (!frame.is_ack) {
    h2::append_ping(sender_.queue(), frame.text, true);
  } else if (window_meter_.is_measuring() && frame.text == WindowMeter::ping) {
    grow_windows();
  }
  return true;
}

bool H2ClientConnection::on_window_update(const h2::Frame& frame) {
  if (frame.stream_id == 0) {
    return sender_.add_window(frame.value) ||
           fail(h2::ErrorCode::flow_control_error, "The window of the connection is too large");
  }
  if (is_idle_stream(frame.stream_id))
    return fail(h2::ErrorCode::protocol_error, "WINDOW_UPDATE of a stream that was not opened");
  H2ClientStream* const stream = find(frame.stream_id);
  if (stream != nullptr && !sender_.add_window(*stream, frame.value))
    reset(*stream, h2::ErrorCode::flow_control_error, failure(ErrorCode::http_2_violation).error());
  return true;
}

bool H2ClientConnection::on_rst_stream(const h2::Frame& frame) {
  if (is_idle_stream(frame.stream_id))
    return fail(h2::ErrorCode::protocol_error, "RST_STREAM of a stream that was not opened");
  H2ClientStream* const stream = find(frame.stream_id);
  if (stream == nullptr) return spend_idle_frame();
  forget(frame.stream_id);
  if (frame.error == h2::ErrorCode::refused_stream) {
    ++stats_.streams_refused;
    stream->fail(failure(ErrorCode::stream_refused).error(), true);
  } else if (frame.error == h2::ErrorCode::http_1_1_required) {
    ++stats_.streams_refused;
    stream->fail(failure(ErrorCode::http_1_required).error(), true);
  } else {
    ++stats_.streams_reset;
    stream->fail(failure(ErrorCode::stream_reset).error());
  }
  return spend_idle_frame();
}

bool H2ClientConnection::on_goaway(const h2::Frame& frame) {
  ++stats_.goaways;
  is_draining_ = true;
  const Error cause =
      failure(frame.error == h2::ErrorCode::http_1_1_required ? ErrorCode::http_1_required
                                                              : ErrorCode::stream_refused)
          .error();
  for (auto next = streams_.upper_bound(frame.value); next != streams_.end();) {
    H2ClientStream& stream = *next->second;
    next = streams_.erase(next);
    stream.fail(cause, true);
  }
  changed_();
  return true;
}

}  // namespace tambour::http
