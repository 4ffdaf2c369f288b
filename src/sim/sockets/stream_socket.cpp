// StreamSocket: reading, writing, shutting down and closing. Connecting and accepting are in
// stream_setup.cpp.
#include "sim/sockets/stream_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tambour::sim::detail {

void StreamSocket::pair(StreamSocket& one, StreamSocket& other) {
  const auto [there, back] = Channel::open(one.machine_, other.machine_);
  one.use(back, there);
  other.use(there, back);
  for (StreamSocket* socket : {&one, &other}) {
    socket->state_ = State::connected;
    socket->told_connected_ = true;
    socket->peer_.family = AF_UNIX;
  }
}

void StreamSocket::use(std::shared_ptr<Channel> in, std::shared_ptr<Channel> out) noexcept {
  in_ = std::move(in);
  out_ = std::move(out);
  in_->reader = this;
  out_->writer = this;
  if (send_buffer_bytes_ != 0) out_->set_capacity(send_buffer_bytes_);
}

void StreamSocket::drop_channels() noexcept {
  if (!has_channels()) return;
  in_->reader = nullptr;
  out_->writer = nullptr;
}

// sk_stream_is_writeable() and unix_writable(): a socket is writable if a third (TCP) or three
// quarters (Unix) of the buffer are free, so that a writer is not woken for every few bytes.
bool StreamSocket::is_writable(std::size_t charged) const noexcept {
  const std::size_t capacity = out_->capacity();
  if (is_unix()) return charged <= capacity / 4;
  return charged < capacity && (capacity - charged) * 2 >= charged;
}

Events StreamSocket::readiness() const noexcept {
  if (state_ == State::listening) {
    return accept_queue_.empty() ? Events::none : Events::read;
  }
  Events events = Events::none;
  if (error_ != 0) events |= Events::error;
  if (state_ == State::connecting) return events;
  const bool closed = state_ == State::fresh || state_ == State::broken;
  if (closed || (shut_read_ && shut_write_)) events |= hang_up;
  if (shut_read_) events |= Events::read | Events::closed;
  if (has_channels() && !in_->arrived().empty()) events |= Events::read;
  if (!has_channels() || (shut_write_ && !is_unix()) || is_writable(out_->charged()))
    events |= Events::write;
  return events;
}

int StreamSocket::not_connected(bool sending) const noexcept {
  switch (state_) {
    case State::fresh:
    case State::listening:
      if (is_unix()) return sending ? -ENOTCONN : -EINVAL;
      return sending ? -EPIPE : -ENOTCONN;
    case State::connecting:
      return -EAGAIN;
    case State::connected:
    case State::broken:
      break;
  }
  return 0;
}

ssize_t StreamSocket::receive(Message& message) {
  if (const int error = not_connected(false)) {
    // A refused connection reports its error first.
    return error_ != 0 ? -take_error() : error;
  }
  if (total_size(message.buffers) == 0) return 0;
  if (has_channels() && !in_->arrived().empty()) return take(message);
  return nothing_to_read();
}

ssize_t StreamSocket::take(Message& message) {
  World& world = machine_.world;
  std::string_view bytes = in_->arrived().view();
  bytes = bytes.substr(0, total_size(message.buffers));
  if (bytes.size() > 1 && world.random.chance(world.options.short_read))
    bytes = bytes.substr(0, 1 + world.random.below(bytes.size() - 1));
  // tcp(7): MSG_TRUNC discards the data.
  const bool discard = !is_unix() && (message.flags & MSG_TRUNC) != 0;
  const std::size_t taken = discard ? bytes.size() : scatter(bytes, message.buffers);
  if ((message.flags & MSG_PEEK) == 0) in_->consume(taken);
  return ssize_t(taken);
}

ssize_t StreamSocket::nothing_to_read() {
  // After EOF a TCP stream keeps returning EOF, even after a later error.
  if (end_arrived_ && !is_unix()) return 0;
  if (error_ != 0) return -take_error();
  return shut_read_ ? 0 : -EAGAIN;
}

int StreamSocket::cannot_send() {
  if (const int error = not_connected(true)) return error_ != 0 ? -take_error() : error;
  if (!is_unix()) {
    if (error_ != 0) return -take_error();
    return shut_write_ ? -EPIPE : 0;
  }
  if (shut_write_) return -EPIPE;
  return error_ != 0 ? -take_error() : 0;
}

ssize_t StreamSocket::send(Message& message) {
  if (const int error = cannot_send()) return error;
  const std::size_t wanted = total_size(message.buffers);
  if (wanted == 0) return 0;
  std::size_t taken = std::min(wanted, out_->room());
  if (taken == 0) return -EAGAIN;
  World& world = machine_.world;
  if (taken > 1 && world.random.chance(world.options.short_write))
    taken = 1 + world.random.below(taken - 1);
  const auto out = out_;
  const auto in = in_;
  out->send(SegmentKind::data, gather(message.buffers, taken));
  if (!is_unix() && world.random.chance(world.options.stream_reset)) {
    world.trace_line(machine_.name) << "reset by the network";
    out->send(SegmentKind::reset);
    in->send(SegmentKind::reset);
  }
  return ssize_t(taken);
}

void StreamSocket::on_segment(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::established:
      if (state_ == State::connecting) state_ = State::connected;
      break;
    case SegmentKind::data:
      break;
    case SegmentKind::end:
      end_arrived_ = true;
      shut_read_ = true;
      break;
    case SegmentKind::reset:
      // tcp_reset(): if the peer has already half-closed the connection, the error is EPIPE.
      break_off(state_ == State::connecting ? ECONNREFUSED : end_arrived_ ? EPIPE : ECONNRESET);
      return;
  }
  changed();
}

void StreamSocket::on_room(std::size_t freed) noexcept {
  if (!is_writable(out_->charged() + freed) && is_writable(out_->charged())) changed();
}

void StreamSocket::break_off(int error) noexcept {
  if (state_ == State::broken) return;
  state_ = State::broken;
  error_ = error;
  shut_read_ = true;
  shut_write_ = true;
  drop_channels();  // Data that has arrived can still be read.
  changed();
}

void StreamSocket::reset() {
  if (state_ != State::connected) return;
  const auto out = out_;
  const auto in = in_;
  out->send(SegmentKind::reset);
  in->send(SegmentKind::reset);
}

int StreamSocket::shutdown(int mode) {
  if (mode != SHUT_RD && mode != SHUT_WR && mode != SHUT_RDWR) return -EINVAL;
  const bool reading = mode != SHUT_WR;
  const bool writing = mode != SHUT_RD;
  if (is_unix()) {
    shutdown_unix(reading, writing);
    return 0;
  }
  if (state_ == State::listening) {
    if (!reading) return 0;
    close_listener();
    state_ = State::fresh;
    return 0;
  }
  if (state_ != State::connected) return -ENOTCONN;
  if (reading) shut_read_ = true;
  if (writing && !std::exchange(shut_write_, true)) out_->send(SegmentKind::end);
  changed();
  return 0;
}

// unix_shutdown(): shutting down one direction here shuts down the opposite one at the peer.
void StreamSocket::shutdown_unix(bool reading, bool writing) noexcept {
  shut_read_ |= reading;
  shut_write_ |= writing;
  if (has_channels() && out_->reader != nullptr) {
    StreamSocket& other = *out_->reader;
    other.shut_read_ |= writing;
    other.shut_write_ |= reading;
    other.changed();
  }
  changed();
}

void StreamSocket::close() {
  const auto alive = shared_from_this();
  if (state_ == State::listening) {
    close_listener();
  } else if (is_unix()) {
    close_unix();
  } else {
    close_tcp();
  }
  drop_channels();
  if (bound_) machine_.unbind(*this, local_);
  bound_ = false;
}

void StreamSocket::close_listener() {
  for (const auto& waiting : std::exchange(accept_queue_, {})) {
    waiting->linger_reset_ = true;
    waiting->close();
  }
  if (!is_unix() && bound_) machine_.unbind(*this, local_);
  if (!is_unix()) bound_ = false;
}

void StreamSocket::close_unix() {
  if (!has_channels() || out_->reader == nullptr) return;
  StreamSocket& other = *out_->reader;
  other.shut_read_ = true;
  other.shut_write_ = true;
  if (!in_->arrived().empty() || linger_reset_) other.error_ = ECONNRESET;
  other.changed();
}

void StreamSocket::close_tcp() {
  if (state_ != State::connected) return;
  // RFC 9293, 3.6: closing a connection with unread data resets it.
  if (linger_reset_ || !in_->arrived().empty()) {
    out_->send(SegmentKind::reset);
  } else if (!shut_write_) {
    out_->send(SegmentKind::end);
  }
}

}  // namespace tambour::sim::detail
