// Connection: the queue of frames, and the task that writes it.
//
// The first task that sends writes its message itself. Messages that others queue meanwhile are
// written by a task in the background, which also takes over if the writing task is cancelled.
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/net/stream_error.h>

#include "base/failure.h"
#include "http/websocket/connection.h"
#include "http_message/ws/error.h"

namespace tambour::http::detail::websocket {
/// While a task writes. When it ends, or its coroutine is destroyed, what is left is written in the
/// background.
class Connection::Writing {
 public:
  explicit Writing(Connection& self) noexcept : self_(self) { self.is_writing_ = true; }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() {
    self_.is_writing_ = false;
    self_.progress_timer_.stop();
    try {
      if (!self_.sending_.empty()) {
        self_.sending_.append(std::move(self_.queue_));
        self_.queue_ = std::exchange(self_.sending_, Buffer());
      }
    } catch (const std::bad_alloc&) {
      self_.fail(system_error(ENOMEM));
    }
    self_.wake_senders();
    self_.start_writing();
  }

 private:
  Connection& self_;
};

Result<> Connection::check_sending() const noexcept {
  if (error_) return std::unexpected(error_);
  if (!stream_.is_open()) return tambour::detail::base::failure(EBADF);
  if (has_sent_close_) return std::unexpected(receive_error_ ? receive_error_ : StreamError::eof);
  return {};
}

void Connection::append_message(WebSocketMessage message) {
  append_part(std::move(message.data), true, message.is_text);
  ++stats_.messages_sent;
}

void Connection::append_part(Buffer part, bool is_last, bool is_text) {
  const std::size_t bytes = part.size();
  const bool begins = !writer_.is_within_message();
  if (begins) is_sending_compressed_ = compression_ != nullptr && compression_->compresses(bytes);
  try {
    Buffer frames;
    if (is_sending_compressed_) {
      Buffer compressed;
      compression_->compress(std::move(part), is_last, compressed);
      part = std::move(compressed);
    }
    writer_.append_part(frames, std::move(part), is_last,
                        {.opcode = is_text ? ws::Opcode::text : ws::Opcode::binary,
                         .is_compressed = is_sending_compressed_});
    queue_frames(std::move(frames));
  } catch (...) {
    // The peer could not decompress what follows, and would take the next message for a fragment.
    if (is_sending_compressed_ || !begins || !is_last) fail(system_error(ENOMEM));
    throw;
  }
  stats_.bytes_sent += bytes;
}

void Connection::queue_frames(Buffer frames) {
  const std::size_t bytes = frames.size();
  queue_.append(std::move(frames));
  queued_total_ += bytes;
}

Task<Result<>> Connection::send(Pointer self, WebSocketMessage message) {
  if (message.is_text && !ws::is_utf8(message.data))
    co_return ws::failure(WebSocketError::invalid_utf8);
  while (self->unsent_bytes() >= self->options_->unsent_bytes_max && !self->error_) {
    const Result<> waited = co_await self->progress_.wait();
    if (!waited) co_return waited;
  }
  if (const Result<> checked = self->check_sending(); !checked) co_return checked;
  self->append_message(std::move(message));
  if (!self->is_writing_) co_return co_await self->write_queue();
  co_return co_await write_until(self, self->queued_total_);
}

Task<Result<>> Connection::send_part(Pointer self, Buffer part, bool is_last, bool is_text) {
  while (self->unsent_bytes() >= self->options_->unsent_bytes_max && !self->error_) {
    const Result<> waited = co_await self->progress_.wait();
    if (!waited) co_return waited;
  }
  if (const Result<> checked = self->check_sending(); !checked) co_return checked;
  self->append_part(std::move(part), is_last, is_text);
  if (is_last) {
    ++self->stats_.messages_sent;
    self->notify_subscribers();
  }
  if (!self->is_writing_) co_return co_await self->write_queue();
  co_return co_await write_until(self, self->queued_total_);
}

Result<> Connection::try_send(WebSocketMessage message) {
  if (const Result<> checked = check_sending(); !checked) return checked;
  if (message.is_text && !ws::is_utf8(message.data))
    return ws::failure(WebSocketError::invalid_utf8);
  if (unsent_bytes() >= options_->unsent_bytes_max) return tambour::detail::base::failure(EAGAIN);
  append_message(std::move(message));
  start_writing();
  return {};
}

Result<> Connection::ping(std::string_view payload) {
  if (const Result<> checked = check_sending(); !checked) return checked;
  if (unsent_bytes() >= options_->unsent_bytes_max) return tambour::detail::base::failure(EAGAIN);
  Buffer frame;
  if (const Result<> appended = writer_.append_ping(frame, payload); !appended) return appended;
  queue_frames(std::move(frame));
  // The time limit is that of the first ping that was not answered.
  if (pinged_at_ == never || received_at_ >= pinged_at_) pinged_at_ = loop_.now();
  last_ping_at_ = loop_.now();
  start_writing();
  return {};
}

void Connection::append_pong() {
  if (!std::exchange(owes_pong_, false)) return;
  Buffer frame;
  static_cast<void>(writer_.append_pong(frame, pong_));
  queue_frames(std::move(frame));
}

Task<Result<>> Connection::flush(Pointer self) {
  if (self->error_) co_return std::unexpected(self->error_);
  co_return co_await write_until(self, self->queued_total_);
}

/// Waits until the stream has accepted everything up to a position in the sequence of frames.
Task<Result<>> Connection::write_until(Pointer self, std::uint64_t position) {
  while (self->queued_total_ - self->unsent_bytes() < position && !self->error_) {
    const Result<> waited = co_await self->progress_.wait();
    if (!waited) co_return waited;
  }
  if (self->error_) co_return std::unexpected(self->error_);
  co_return {};
}

/// Writes what is queued now. The caller keeps the connection.
Task<Result<>> Connection::write_queue() {
  const Writing writing(*this);
  append_pong();
  sending_ = std::exchange(queue_, Buffer());
  sending_before_ = sending_.size();
  if (options_->write_timeout > Duration::zero()) progress_timer_.start(options_->write_timeout);
  const Result<> written = co_await stream_.write(sending_);
  if (written) co_return written;
  if (error_) co_return std::unexpected(error_);
  // If the task was asked to stop, the rest is written in the background.
  if (written.error() != system_error(ECANCELED) || !stream_.is_open()) fail(written.error());
  co_return written;
}

Task<> Connection::write_in_background() {
  try {
    while ((!queue_.empty() || owes_pong_) && !error_) static_cast<void>(co_await write_queue());
  } catch (const std::bad_alloc&) {
    fail(system_error(ENOMEM));
  }
  writes_in_background_ = false;
}

void Connection::start_writing() noexcept {
  if (is_writing_ || writes_in_background_ || error_) return;
  if (queue_.empty() && !owes_pong_) return;
  writes_in_background_ = true;
  try {
    append_pong();
    tasks_.spawn(write_in_background());
  } catch (const std::bad_alloc&) {
    writes_in_background_ = false;
    fail(system_error(ENOMEM));
  }
}

void Connection::check_progress() noexcept {
  if (!is_writing_) return;
  if (sending_.size() == sending_before_) return fail(system_error(ETIMEDOUT));
  sending_before_ = sending_.size();
  progress_timer_.start(options_->write_timeout);
}

void Connection::wake_senders() noexcept {
  progress_.set();
  progress_.reset();
  notify_subscribers();
}

/// A subscriber may close the connection, which ends all of them.
void Connection::notify_subscribers() noexcept {
  if (has_sent_close_ || error_) {
    while (Subscriber* const subscriber = subscribers_.front()) subscriber->connection_ends();
    return;
  }
  Subscriber* next = subscribers_.front();
  while (next != nullptr && !has_sent_close_ && !error_) {
    Subscriber& subscriber = *next;
    next = subscribers_.after(subscriber);
    subscriber.connection_has_room();
  }
}

Subscriber* Connection::find_subscriber(const void* topic) const noexcept {
  Subscriber* subscriber = subscribers_.front();
  while (subscriber != nullptr && subscriber->topic() != topic)
    subscriber = subscribers_.after(*subscriber);
  return subscriber;
}

std::size_t Connection::count_subscribers() const noexcept {
  std::size_t count = 0;
  for (const Subscriber* subscriber = subscribers_.front(); subscriber != nullptr;
       subscriber = subscribers_.after(*subscriber))
    ++count;
  return count;
}

void Connection::queue_message(const SharedMessage& message) {
  queue_frames(message.frame.slice());
  // The peer's window now contains the message, which the compressor of the connection lacks.
  if (message.is_compressed) compression_->forget_context();
  ++stats_.messages_sent;
  stats_.bytes_sent += message.bytes;
}

}  // namespace tambour::http::detail::websocket
