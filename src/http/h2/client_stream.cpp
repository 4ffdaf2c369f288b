// H2ClientStream: the parts of a request, and of its response.
#include "http/h2/client_stream.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/h2/client_connection.h"
#include "http/h2/sender.h"
#include "http_message/failure.h"
#include "http_message/h1/trailers.h"

namespace tambour::http {
namespace {

/// More interim responses than any server needs, while the program looks at none.
constexpr int interim_heads_max = 33;

}  // namespace

H2ClientStream::H2ClientStream(H2ClientConnection& connection)
    : H2SendingStream(connection.loop(), 0), connection_(connection), arrived_(connection.loop()) {}

Result<> H2ClientStream::open(const RequestHead& head, std::optional<std::uint64_t> length,
                              bool ends) {
  method_ = head.method;
  if (!connection_.can_open()) {
    fail(system_error(ECONNRESET), true);
    return std::unexpected(error_);
  }
  if (const Result<> opened = connection_.open(*this, head, length, ends); !opened) return opened;
  is_open_ = true;
  receive_window_ = connection_.initial_receive_window();
  outgoing_.has_ended = ends;
  return {};
}

void H2ClientStream::close(detail::h2::ErrorCode code) noexcept {
  if (!is_open_) return;
  is_open_ = false;
  connection_.discard(received_.size());
  received_.clear();
  connection_.remove(*this, is_response_complete_ && outgoing_.has_ended, code);
}

const Error& H2ClientStream::send_error() const noexcept {
  return send_error_ ? send_error_ : connection_.sender().error();
}

void H2ClientStream::write(Buffer&& piece) {
  if (send_error() || outgoing_.has_ended || outgoing_.ends || piece.empty()) return;
  const std::size_t bytes = piece.size();
  outgoing_.unsent.append(std::move(piece));
  connection_.sender().add_unsent(*this, bytes);
  connection_.sender().update(*this);
}

Result<> H2ClientStream::try_write(Buffer& from) noexcept {
  if (send_error()) return std::unexpected(send_error());
  if (outgoing_.has_ended || outgoing_.ends) return std::unexpected(system_error(EPIPE));
  if (!connection_.sender().send_at_once(*this, from)) return std::unexpected(system_error(EAGAIN));
  return {};
}

Result<> H2ClientStream::end(const Fields& trailers) {
  if (send_error() || outgoing_.has_ended || outgoing_.ends) return {};
  for (const Field field : trailers) {
    if (!detail::h1::may_be_trailer(field.name)) return failure(ErrorCode::trailer_not_allowed);
  }
  outgoing_.trailers = trailers;
  outgoing_.ends = true;
  if (outgoing_.unsent.empty()) connection_.sender().end(*this);
  return {};
}

void H2ClientStream::stop_sending() noexcept {
  if (is_open_) connection_.sender().drop(*this);
}

bool H2ClientStream::is_flushed() {
  H2Sender& sender = connection_.sender();
  if (send_error() || !is_open_ || sender.is_sent(*this)) return true;
  sender.add_waiting(*this);
  sent_.reset();
  sender.wake();
  return false;
}

Buffer H2ClientStream::take(std::size_t bytes_max) {
  Buffer piece = received_.take(std::min(bytes_max, received_.size()));
  connection_.discard(piece.size());
  if (!is_response_complete_ && !error_ && is_open_) grow_window();
  return piece;
}

/// Lets the server send as much as the window of streams has grown to, and not less than half of it
/// at a time.
void H2ClientStream::grow_window() {
  const auto size = static_cast<std::int64_t>(connection_.stream_window());
  const std::int64_t missing = size - receive_window_ - static_cast<std::int64_t>(received_.size());
  if (missing < size / 2) return;
  receive_window_ += missing;
  connection_.send_window_update(id_, static_cast<std::uint32_t>(missing));
}

H2ClientStream::Checked H2ClientStream::on_headers(detail::h2::FieldSection& section, bool ends) {
  has_received_ = true;
  arrived_.set();
  if (is_response_complete_ || (has_head_ && !ends))
    return std::unexpected(detail::h2::Violation::unexpected_pseudo_header);
  if (has_head_) {
    if (auto valid = detail::h2::make_trailers(section, trailers_); !valid) return valid;
    return end_response();
  }
  ResponseHead head;
  if (auto valid = detail::h2::make_response(section, ends, head); !valid) return valid;
  const Status status = head.status;
  if (!is_interim(status)) {
    const auto length = detail::h2::BodyLength::of_response(head, method_);
    if (!length) return std::unexpected(length.error());
    length_ = *length;
    stated_length_ = length_.bytes_left();
    has_head_ = true;
  } else if (++interim_heads_ > interim_heads_max) {
    return {};  // The exchange fails, which has seen as many.
  }
  heads_.push_back(std::move(head));
  return ends ? end_response() : Checked();
}

H2ClientStream::Checked H2ClientStream::on_data(Buffer&& data, std::uint32_t flow_bytes,
                                                bool ends) {
  if (!has_head_ || is_response_complete_) {
    connection_.discard(flow_bytes);
    return std::unexpected(detail::h2::Violation::missing_pseudo_header);
  }
  if (auto added = length_.add(data.size()); !added) {
    connection_.discard(flow_bytes);
    return added;
  }
  receive_window_ -= flow_bytes;
  const std::size_t padding = flow_bytes - data.size();
  connection_.discard(padding);
  received_bytes_ += data.size();
  arrived_.set();
  received_.append(std::move(data));
  if (receive_window_ < 0) {
    fail(failure(ErrorCode::http_2_violation).error());
    close(detail::h2::ErrorCode::flow_control_error);
    return {};
  }
  if (ends) return end_response();
  if (padding > 0) grow_window();  // Nothing else would, if DATA is only padding.
  return {};
}

H2ClientStream::Checked H2ClientStream::end_response() noexcept {
  if (auto finished = length_.finish(); !finished) return finished;
  is_response_complete_ = true;
  arrived_.set();
  return {};
}

void H2ClientStream::fail(const Error& error, bool is_unprocessed) noexcept {
  if (!send_error_) send_error_ = error;
  if (error_ || is_response_complete_) {
    // The response is whole, whatever follows. The rest of the request is not sent.
    stop_sending();
    sent_.set();
    return;
  }
  error_ = error;
  is_unprocessed_ = is_unprocessed && !has_received_;
  stop_sending();
  arrived_.set();
  sent_.set();
}

}  // namespace tambour::http
