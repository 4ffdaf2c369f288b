// H2Connection: what each kind of frame causes. Functions return false if the connection must end.
#include <cerrno>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "http/server/h2/connection.h"
#include "http_message/failure.h"
#include "http_message/h2/field_section.h"
#include "http_message/h2/frame_writer.h"
#include "http_message/h2/message.h"
#include "http_message/h2/priority.h"

namespace tambour::http {
namespace {

namespace h2 = detail::h2;

}  // namespace

bool H2Connection::handle(h2::Frame& frame) {
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
      return spend_idle_frame();  // The client opens no further streams, and closes the connection.
    case h2::FrameKind::window_update:
      return spend_idle_frame() && on_window_update(frame);
    case h2::FrameKind::rst_stream:
      return on_rst_stream(frame);
    case h2::FrameKind::priority_update:
      on_priority_update(frame);
      return spend_idle_frame();
    case h2::FrameKind::priority:
      if (frame.depends_on_itself)
        return on_stream_error(frame.stream_id, h2::ErrorCode::protocol_error);
      return spend_idle_frame();
    case h2::FrameKind::unknown:
      return spend_idle_frame();
    case h2::FrameKind::stream_error:
      return on_stream_error(frame.stream_id, code_of(frame.violation));
  }
  return true;
}

bool H2Connection::on_data(h2::Frame& frame) {
  receive_window_ -= frame.flow_bytes;
  if (receive_window_ < 0)
    return fail(h2::ErrorCode::flow_control_error, "DATA exceeds the window of the connection");
  if (frame.data.empty() && !frame.end_stream && !spend_idle_frame()) return false;
  if (!frame.data.empty()) frame_budget_.data_received();
  H2Stream* const stream = find(frame.stream_id);
  if (stream == nullptr || stream->error()) {
    credit(frame.flow_bytes);
    if (is_idle_stream(frame.stream_id))
      return fail(h2::ErrorCode::protocol_error, "DATA of a stream that was not opened");
    const Closed* const closed = find_closed(frame.stream_id);
    const bool may_receive = stream != nullptr ? !stream->is_reset_by_client()
                                               : closed != nullptr && closed->may_receive;
    if (may_receive) return true;
    return on_stream_error(frame.stream_id, h2::ErrorCode::stream_closed);
  }
  if (stream->is_request_complete() || stream->receive_window() < frame.flow_bytes) {
    credit(frame.flow_bytes);
    return on_stream_error(frame.stream_id, stream->is_request_complete()
                                                ? h2::ErrorCode::stream_closed
                                                : h2::ErrorCode::flow_control_error);
  }
  if (!frame.end_stream) measure_window(*stream, frame.flow_bytes);
  const bool ends = frame.end_stream;
  const std::uint32_t flow_bytes = frame.flow_bytes;
  if (const auto received = stream->receive(std::move(frame.data), flow_bytes); !received) {
    credit(flow_bytes);
    return on_stream_error(frame.stream_id, code_of(received.error()));
  }
  if (ends) {
    if (const auto ended = stream->end_request(); !ended)
      return on_stream_error(frame.stream_id, code_of(ended.error()));
  }
  remove_if_done(*stream);
  return true;
}

bool H2Connection::on_headers(const h2::Frame& frame) {
  // Each block changes the state of the decoder, also one that is not wanted.
  h2::FieldSection section(field_limits_);
  if (const auto decoded = decoder_.decode(frame.text, section); !decoded)
    return fail(decoded.error());
  const std::uint32_t stream_id = frame.stream_id;
  if (stream_id % 2 == 0)
    return fail(h2::ErrorCode::protocol_error, "A client has opened a stream with an even id");
  if (H2Stream* const stream = find(stream_id)) return on_trailers(frame, *stream, section);
  if (stream_id <= last_stream_id_) {
    const Closed* const closed = find_closed(stream_id);
    if (closed != nullptr && closed->may_receive) return spend_idle_frame();
    if (closed != nullptr) return fail(h2::ErrorCode::stream_closed, "HEADERS of a closed stream");
    return fail(h2::ErrorCode::protocol_error,
                "A new stream id is not greater than the previous ones");
  }
  last_stream_id_ = stream_id;
  if (is_draining_out_) {
    note_closed(stream_id, !frame.end_stream);
    return true;
  }
  last_accepted_id_ = stream_id;
  const bool is_full = has_too_many_streams();
  const bool is_overloaded = memory_.is_overloaded(options().http_2.server_bytes_max);
  if (frame.depends_on_itself || is_full || is_overloaded) {
    if (!frame.depends_on_itself)
      count(is_full ? H2Event::refused_stream : H2Event::overloaded_stream);
    send_reset(stream_id, frame.depends_on_itself ? h2::ErrorCode::protocol_error
                                                  : h2::ErrorCode::refused_stream);
    note_closed(stream_id, !frame.end_stream);
    return spend_reset();
  }
  return on_request(frame, section);
}

/// A client that has received a response may send the next request before the handler of the first
/// one has ended. There are at most as many of these handlers as of others.
bool H2Connection::has_too_many_streams() const noexcept {
  const std::size_t streams_max = options().http_2.streams_max;
  if (streams_.size() < streams_max) return false;
  if (streams_.size() / 2 >= streams_max) return true;
  std::size_t more = streams_.size() - streams_max;
  for (const auto& [id, stream] : streams_) {
    const bool is_closed =
        stream->outgoing().has_ended && stream->is_request_complete() && !stream->error();
    if (is_closed && more-- == 0) return false;
  }
  return true;
}

bool H2Connection::on_request(const h2::Frame& frame, h2::FieldSection& section) {
  frame_budget_.message_received();
  idle_deadline_ = never;  // It begins again when the last stream has ended.
  std::unique_ptr<H2Stream> created = make_stream(frame.stream_id);
  H2Stream& stream = *created;
  if (section.is_too_large()) {
    count(H2Event::oversized_head);
    stream.head() = RequestHead();  // It may be that of another request.
    add(std::move(created));
    if (frame.end_stream) static_cast<void>(stream.end_request());
    stream.exchange().reject(stream.head(), ErrorCode::fields_too_large);
    stream.handler_ended();
    remove_if_done(stream);
    return true;
  }
  constexpr h2::RequestRules rules{.allows_connect_protocol = true};
  auto valid = h2::make_request(section, rules, stream.head(), stream.head().protocol);
  if (valid) valid = stream.start(frame.end_stream);
  if (!valid) {
    send_reset(frame.stream_id, code_of(valid.error()));
    note_closed(frame.stream_id, !frame.end_stream);
    return spend_reset();
  }
  if (!early_priorities_.empty()) apply_early_priority(stream);
  add(std::move(created));
  if (is_postponed(stream)) {
    count(H2Event::postponed_handler);
    start_waiting(start_handler_later(stream));
  } else {
    start_handler(stream);
  }
  return true;
}

void H2Connection::add(std::unique_ptr<H2Stream> stream) {
  const std::uint32_t id = stream->id();
  streams_.add(id, std::move(stream));
  if (!progress_timer_.is_started()) check_by(next_check());
}

bool H2Connection::on_trailers(const h2::Frame& frame, H2Stream& stream,
                               h2::FieldSection& section) {
  if (stream.error() && !stream.is_reset_by_client()) return spend_idle_frame();
  if (stream.is_request_complete() || stream.is_reset_by_client())
    return on_stream_error(frame.stream_id, h2::ErrorCode::stream_closed);
  if (!frame.end_stream || section.is_too_large())
    return on_stream_error(frame.stream_id, h2::ErrorCode::protocol_error);
  auto valid = h2::make_trailers(section, stream.received_trailers());
  if (valid) valid = stream.end_request();
  if (!valid) return on_stream_error(frame.stream_id, code_of(valid.error()));
  remove_if_done(stream);
  return true;
}

bool H2Connection::on_settings(const h2::Frame& frame) {
  if (frame.is_ack) {
    settings_deadline_ = never;
    return true;
  }
  for (const h2::Setting setting : settings_of(frame)) {
    if (!sender_.apply(setting, streams_))
      return fail(h2::ErrorCode::flow_control_error, "SETTINGS makes a window too large");
  }
  h2::append_settings_ack(sender_.queue());
  return true;
}

bool H2Connection::on_ping(const h2::Frame& frame) {
  if (!frame_budget_.take_answer(frame.is_ack) && !spend_idle_frame()) return false;
  if (!frame.is_ack) {
    h2::append_ping(sender_.queue(), frame.text, true);
  } else if (window_meter_.is_measuring() && frame.text == WindowMeter::ping) {
    grow_windows();
  } else if (is_draining_ && frame.text == h2_drain_ping) {
    end_drain();
  }
  return true;
}

bool H2Connection::on_window_update(const h2::Frame& frame) {
  if (frame.stream_id == 0) {
    return sender_.add_window(frame.value) ||
           fail(h2::ErrorCode::flow_control_error, "The window of the connection is too large");
  }
  H2Stream* const stream = find(frame.stream_id);
  if (stream == nullptr) {
    return !is_idle_stream(frame.stream_id) ||
           fail(h2::ErrorCode::protocol_error, "WINDOW_UPDATE of a stream that was not opened");
  }
  return stream->error() || sender_.add_window(*stream, frame.value) ||
         on_stream_error(frame.stream_id, h2::ErrorCode::flow_control_error);
}

bool H2Connection::on_rst_stream(const h2::Frame& frame) {
  H2Stream* const stream = find(frame.stream_id);
  if (stream == nullptr) {
    if (is_idle_stream(frame.stream_id))
      return fail(h2::ErrorCode::protocol_error, "RST_STREAM of a stream that was not opened");
    return spend_idle_frame();
  }
  if (stream->error()) return spend_idle_frame();
  stream->reset_by_client();
  remove_if_done(*stream);
  return spend_reset();
}

bool H2Connection::on_stream_error(std::uint32_t stream_id, h2::ErrorCode code) {
  if (is_idle_stream(stream_id)) return fail(code, "A frame of a stream that was not opened");
  H2Stream* const stream = find(stream_id);
  if (stream == nullptr || stream->is_reset_by_client()) {
    send_reset(stream_id, code);
  } else if (!stream->error()) {
    reset(*stream, code, system_error(ECONNRESET));
    remove_if_done(*stream);
  }
  return spend_reset();
}

}  // namespace tambour::http
