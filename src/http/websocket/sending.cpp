// Connection: the queue of frames, and the task that writes it.
//
// What is sent is written at once, without a task. What the stream does not accept is written by a
// task in the background, together with the messages that are queued meanwhile. The answers to
// messages that have arrived together are written together.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <tambour/net/stream_error.h>

#include "base/failure.h"
#include "http/websocket/connection.h"
#include "http_message/ws/error.h"
#include "loop/core.h"

namespace tambour::http::detail::websocket {
namespace {

/// Answers are written before the next message is handled if there are more bytes of them.
constexpr std::size_t collected_bytes_max = std::size_t{64} * 1024;

}  // namespace

Result<> Connection::check_sending() const noexcept {
  if (error_) return std::unexpected(error_);
  if (!stream_.is_open()) return tambour::detail::base::failure(EBADF);
  if (has_sent_close_) return std::unexpected(receive_error_ ? receive_error_ : StreamError::eof);
  return {};
}

void Connection::append_message(WebSocketMessage&& message) {
  append_part(std::move(message.data), true, message.is_text);
  ++stats_.messages_sent;
}

void Connection::append_part(Buffer&& part, bool is_last, bool is_text) {
  const std::size_t bytes = part.size();
  const bool begins = !writer_.is_within_message();
  if (begins) is_sending_compressed_ = compression_ != nullptr && compression_->compresses(bytes);
  const std::size_t queued_before = queue_.size();
  try {
    if (is_sending_compressed_) {
      Buffer compressed;
      compression_->compress(std::move(part), is_last, compressed);
      part = std::move(compressed);
    }
    writer_.append_part(queue_, std::move(part), is_last,
                        {.opcode = is_text ? ws::Opcode::text : ws::Opcode::binary,
                         .is_compressed = is_sending_compressed_});
  } catch (...) {
    // The peer could not decompress what follows, and would take the next message for a fragment.
    if (is_sending_compressed_ || !begins || !is_last) fail(system_error(ENOMEM));
    throw;
  }
  queued_total_ += queue_.size() - queued_before;
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
  if (!self->has_room()) {
    const Result<> waited = co_await wait_for_room(self);
    if (!waited) co_return waited;
  }
  if (const Result<> checked = self->check_sending(); !checked) co_return checked;
  self->append_message(std::move(message));
  self->write_soon();
  if (self->unsent_bytes() > 0 && !self->is_write_deferred())
    co_return co_await write_until(self, self->queued_total_);
  if (self->error_) co_return std::unexpected(self->error_);
  co_return {};
}

Task<Result<>> Connection::send_part(Pointer self, Buffer part, bool is_last, bool is_text) {
  if (!self->has_room()) {
    const Result<> waited = co_await wait_for_room(self);
    if (!waited) co_return waited;
  }
  if (const Result<> checked = self->check_sending(); !checked) co_return checked;
  self->append_part(std::move(part), is_last, is_text);
  if (is_last) {
    ++self->stats_.messages_sent;
    self->notify_subscribers();
  }
  self->start_writing();
  if (self->unsent_bytes() > 0) co_return co_await write_until(self, self->queued_total_);
  if (self->error_) co_return std::unexpected(self->error_);
  co_return {};
}

Result<> Connection::try_send(WebSocketMessage&& message) {
  if (const Result<> checked = check_sending(); !checked) return checked;
  if (message.is_text && !ws::is_utf8(message.data))
    return ws::failure(WebSocketError::invalid_utf8);
  if (unsent_bytes() >= options_->unsent_bytes_max) return tambour::detail::base::failure(EAGAIN);
  append_message(std::move(message));
  write_soon();
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

/// While a write goes on, only the last of several pings is answered.
void Connection::answer_ping() {
  if (is_writing()) {
    backlog_->pong = parser_.control_payload();
    backlog_->owes_pong = true;
    return;
  }
  append_pong(parser_.control_payload());
  write_soon();
}

void Connection::append_pong(std::string_view payload) {
  Buffer frame;
  static_cast<void>(writer_.append_pong(frame, payload));
  queue_frames(std::move(frame));
}

Task<Result<>> Connection::flush(Pointer self) {
  self->start_writing();
  co_return co_await write_until(self, self->queued_total_);
}

Task<Result<>> Connection::wait_for_room(Pointer self) {
  while (!self->has_room()) {
    const Result<> waited = co_await self->waits().progress.wait();
    if (!waited) co_return waited;
  }
  co_return {};
}

/// Waits until the stream has accepted everything up to a position in the sequence of frames.
Task<Result<>> Connection::write_until(Pointer self, std::uint64_t position) {
  while (self->queued_total_ - self->unsent_bytes() < position && !self->error_) {
    const Result<> waited = co_await self->waits().progress.wait();
    if (!waited) co_return waited;
  }
  if (self->error_) co_return std::unexpected(self->error_);
  co_return {};
}

Task<> Connection::write_backlog() {
  Backlog& backlog = *backlog_;
  try {
    do {
      if (std::exchange(backlog.owes_pong, false)) append_pong(backlog.pong);
      backlog.sending = std::exchange(queue_, Buffer());
      backlog.sending_before = backlog.sending.size();
      if (options_->write_timeout > Duration::zero())
        backlog.progress_timer.start(options_->write_timeout);
      const Result<> written = co_await stream_.write(backlog.sending);
      backlog.progress_timer.stop();
      if (!written && !error_) fail(written.error());
      wake_senders();
    } while ((!queue_.empty() || backlog.owes_pong) && !error_);
  } catch (const std::bad_alloc&) {
    fail(system_error(ENOMEM));
  }
  backlog.is_writing = false;
}

void Connection::start_writing() noexcept {
  if (is_writing() || queue_.empty() || error_) return;
  const Result<> written = stream_.try_write(queue_);
  if (written) return wake_senders();
  if (written.error() != system_error(EAGAIN)) return fail(written.error());
  try {
    if (backlog_ == nullptr) backlog_ = std::make_unique<Backlog>(*this);
    backlog_->is_writing = true;
    backlog_->tasks.spawn(write_backlog());
  } catch (const std::bad_alloc&) {
    if (backlog_ != nullptr) backlog_->is_writing = false;
    fail(system_error(ENOMEM));
  }
}

/// If further messages have arrived, they are handled in this iteration, and begin_wait() writes
/// the answers to all of them. If the task does something else instead, the next iteration writes.
void Connection::write_soon() noexcept {
  const std::size_t bytes_max = std::min(collected_bytes_max, options_->unsent_bytes_max);
  if (input_.empty() || is_writing() || queue_.size() >= bytes_max) return start_writing();
  if (deferred_write_ == nullptr) deferred_write_.reset(new (std::nothrow) DeferredWrite(*this));
  if (deferred_write_ == nullptr) return start_writing();
  if (!deferred_write_->linked()) tambour::detail::loop::core_of(loop_).queue(*deferred_write_);
}

void Connection::check_progress() noexcept {
  if (!is_writing()) return;
  if (backlog_->sending.size() == backlog_->sending_before) return fail(system_error(ETIMEDOUT));
  backlog_->sending_before = backlog_->sending.size();
  backlog_->progress_timer.start(options_->write_timeout);
}

void Connection::wake_senders() noexcept {
  if (waits_ != nullptr) {
    waits_->progress.set();
    waits_->progress.reset();
  }
  notify_subscribers();
}

/// When no task of it exists.
void Connection::release_backlog() noexcept {
  if (backlog_ != nullptr && backlog_->tasks.empty()) backlog_.reset();
}

Connection::Waits& Connection::waits() {
  if (waits_ == nullptr) waits_ = std::make_unique<Waits>(loop_);
  return *waits_;
}

/// A subscriber may close the connection, which ends all of them.
void Connection::notify_subscribers() noexcept {
  if (subscribers_.empty()) return;
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
  count_message(message);
}

/// Most subscribers accept a message at once: for them the frame is not linked to the queue. If
/// nothing was queued before, no task and no topic waits for the end of the write.
bool Connection::write_message(const SharedMessage& message) {
  if (!queue_.empty() || is_writing()) return false;
  const std::size_t written = stream_.try_write_piece(message.frame);
  if (written == 0) return false;
  queued_total_ += written;
  const std::size_t size = message.frame.size();
  if (written < size) queue_frames(message.frame.slice(written, size - written));
  count_message(message);
  return true;
}

void Connection::count_message(const SharedMessage& message) noexcept {
  // The peer's window now contains the message, which the compressor of the connection lacks.
  if (message.is_compressed) compression_->forget_context();
  ++stats_.messages_sent;
  stats_.bytes_sent += message.bytes;
}

void Connection::prefetch_for_message() const noexcept {
  __builtin_prefetch(this);
  __builtin_prefetch(&stream_);
  __builtin_prefetch(&writer_);
  __builtin_prefetch(&queue_);
  __builtin_prefetch(&error_);
  __builtin_prefetch(&stats_.bytes_sent);
  __builtin_prefetch(&backlog_);
}

}  // namespace tambour::http::detail::websocket
