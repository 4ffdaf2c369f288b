// Connection: the closing handshake (RFC 6455, section 7).
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/net/stream_error.h>

#include "base/clock.h"
#include "base/failure.h"
#include "http/websocket/connection.h"
#include "http_message/ws/error.h"

namespace tambour::http::detail::websocket {
/// While a task closes the connection. It is closed afterwards, also if the task is destroyed.
class Connection::Closing {
 public:
  explicit Closing(Connection& self) noexcept : self_(self) { self.is_closing_ = true; }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() { self_.fail(StreamError::eof); }

 private:
  Connection& self_;
};

Result<> Connection::append_close(CloseCode code, std::string_view reason) {
  Buffer frame;
  if (const Result<> appended = writer_.append_close(frame, code, reason); !appended)
    return appended;
  queue_frames(std::move(frame));
  has_sent_close_ = true;
  if (backlog_ != nullptr) backlog_->owes_pong = false;
  notify_subscribers();
  return {};
}

/// Begins the handshake without waiting for its end.
void Connection::begin_close(CloseCode code, std::string_view reason) noexcept {
  if (has_sent_close_ || error_) return;
  try {
    static_cast<void>(append_close(code, reason));
  } catch (const std::bad_alloc&) {
    return fail(system_error(ENOMEM));
  }
  start_close_timer();
  start_writing();
}

void Connection::close_slow() noexcept {
  begin_close(CloseCode::policy_violation, "the peer reads too slowly");
}

void Connection::start_close_timer() noexcept {
  if (is_close_limited_ || options_->close_timeout <= Duration::zero()) return;
  is_close_limited_ = true;
  start_peer_timer(options_->close_timeout);
}

Task<Result<>> Connection::close(Pointer self, CloseCode code, std::string reason) {
  if (!self->is_open()) co_return tambour::detail::base::failure(EBADF);
  if (!self->has_sent_close_) {
    const Result<> appended = self->append_close(code, reason);
    if (!appended) co_return appended;
  }
  self->start_close_timer();
  self->start_writing();
  if (self->is_closing_) {
    while (self->is_open()) {
      const Result<> waited = co_await self->waits().progress.wait();
      if (!waited) co_return waited;
    }
  } else {
    const Closing closing(*self);
    const Result<> waited = co_await wait_for_close(self);
    if (!waited) co_return waited;
    co_await shut_down(self);
  }
  if (self->receive_error_ != StreamError::eof) co_return std::unexpected(self->receive_error_);
  co_return {};
}

/// Discards messages until the peer's close frame has arrived or the connection has failed. Fails
/// only if the task was asked to stop.
Task<Result<>> Connection::wait_for_close(Pointer self) {
  while (!self->receive_error_) {
    if (self->is_receiving_) {
      const Result<> ended = co_await self->waits().ended.wait();
      if (!ended) co_return ended;
      continue;
    }
    Buffer discarded;
    const auto part = co_await receive_part(self, discarded, read_bytes_max);
    if (!part && !self->receive_error_) co_return std::unexpected(part.error());
  }
  co_return {};
}

/// The server closes first: RFC 6455, section 7.1.1. After an error, the peer may still be sending:
/// closing at once would make the kernel reset the connection, and the peer might lose the close
/// frame.
Task<> Connection::shut_down(Pointer self) {
  const Result<> flushed = co_await flush(self);
  if (!flushed) co_return;
  const bool is_handshake = self->receive_error_ == StreamError::eof;
  if (!self->is_client_ || !is_handshake) {
    const Result<> shut = co_await self->stream_.shutdown_write();
    if (!shut || is_handshake) co_return;
  }
  while (self->is_open()) {
    self->input_.clear();
    Result<std::size_t> received = 0;
    if (self->stream_.is_socket()) {
      received = co_await self->stream_.socket().read(self->input_, read_bytes_max);
    } else {
      received = co_await self->stream_.stream().read(self->input_, read_bytes_max);
    }
    if (!received || *received == 0) co_return;
  }
}

}  // namespace tambour::http::detail::websocket
