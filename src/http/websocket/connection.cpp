// Connection: receiving, and the time limits of the peer.
#include "http/websocket/connection.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/failure.h"
#include "http/websocket/mask_keys.h"
#include "http_message/ws/error.h"
#include "loop/core.h"

namespace tambour::http::detail::websocket {
namespace {

/// Control frames are counted for this long.
constexpr Duration control_interval = std::chrono::seconds(20);

}  // namespace

Connection::Receiving::Receiving(Connection& self) noexcept : self_(self) {
  tambour::detail::base::check(
      !self.is_receiving_,
      "WebSocket::receive() called while another task receives: let one task receive, and pass "
      "the messages on");
  self.is_receiving_ = true;
  // The time in which no task received does not count for the peer.
  const Duration paused = self.loop_.now() - self.stopped_receiving_at_;
  self.received_at_ = tambour::detail::base::saturating_add(self.received_at_, paused);
  if (self.pinged_at_ != never)
    self.pinged_at_ = tambour::detail::base::saturating_add(self.pinged_at_, paused);
}

Connection::Receiving::~Receiving() {
  self_.is_receiving_ = false;
  self_.stopped_receiving_at_ = self_.loop_.now();
  if (self_.waits_ == nullptr) return;
  // close() receives if this task does not go on.
  self_.waits_->ended.set();
  if (!self_.receive_error_) self_.waits_->ended.reset();
}

Connection::Connection(ByteStream stream, ws::Role role, OptionsPointer options,
                       std::string subprotocol, const std::optional<ws::DeflateAgreement>& deflate)
    : is_client_(role == ws::Role::client),
      loop_(stream.loop()),
      stream_(std::move(stream), input_),
      options_(std::move(options)),
      compression_(deflate ? make_compression(*deflate, role, *options_) : nullptr),
      parser_(role, options_->frame_limits, compression_ != nullptr),
      writer_(role, role == ws::Role::client ? &fill_mask_key : nullptr),
      received_at_(loop_.now()),
      stopped_receiving_at_(received_at_),
      control_counted_since_(received_at_) {
  if (!subprotocol.empty()) {
    texts_ = std::make_unique<Texts>();
    texts_->subprotocol = std::move(subprotocol);
  }
  PeerTimers::open(loop_);
  if (options_->ping_interval > Duration::zero()) start_peer_timer(options_->ping_interval);
}

/// In a task of its own, because the wait would make the frames of idle tasks larger.
Task<> Connection::pause() {
  start_writing();
  static_cast<void>(co_await sleep_for(Duration::zero(), {}));
}

bool Connection::next_message(Result<WebSocketMessage>& message) {
  for (;;) {
    WebSocketPart part;
    const Step step = this->step(message_, read_bytes_max, part);
    if (step == Step::input) return false;
    if (step == Step::failed) {
      message = std::unexpected(receive_error_);
      return true;
    }
    if (!part.is_last) continue;
    message->data = std::move(message_);
    message->is_text = part.is_text;
    return true;
  }
}

Task<Result<WebSocketMessage>> Connection::receive(Pointer self) {
  const Receiving receiving(*self);
  if (self->is_budget_exhausted()) co_await self->pause();
  Result<WebSocketMessage> message;
  for (;;) {
    if (self->next_message(message)) co_return message;
    self->begin_wait();
    Result<std::size_t> received = 0;
    if (self->stream_.is_socket()) {
      received = co_await self->stream_.socket().read(self->input_, read_bytes_max);
    } else {
      received = co_await self->stream_.stream().read(self->input_, read_bytes_max);
    }
    const Result<> ended = self->end_wait(received);
    if (!ended) co_return std::unexpected(ended.error());
  }
}

Task<Result<WebSocketPart>> Connection::receive_part(Pointer self, Buffer& into,
                                                     std::size_t bytes_max) {
  const Receiving receiving(*self);
  if (self->is_budget_exhausted()) co_await self->pause();
  for (;;) {
    WebSocketPart part;
    const Step step = self->step(into, std::max(bytes_max, std::size_t{1}), part);
    if (step == Step::failed) co_return std::unexpected(self->receive_error_);
    if (step == Step::part) co_return part;
    self->begin_wait();
    Result<std::size_t> received = 0;
    if (self->stream_.is_socket()) {
      received = co_await self->stream_.socket().read(self->input_, read_bytes_max);
    } else {
      received = co_await self->stream_.stream().read(self->input_, read_bytes_max);
    }
    const Result<> ended = self->end_wait(received);
    if (!ended) co_return std::unexpected(ended.error());
  }
}

/// Makes progress without waiting.
Connection::Step Connection::step(Buffer& into, std::size_t bytes_max, WebSocketPart& part) {
  for (;;) {
    if (receive_error_) return Step::failed;
    if (compression_ != nullptr && compression_->has_input) {
      const Step decompressed = decompress(into, bytes_max, part);
      if (decompressed != Step::input) return decompressed;
      continue;
    }
    const Step parsed = parse(into, bytes_max, part);
    if (parsed != Step::again) return parsed;
  }
}

Connection::Step Connection::parse(Buffer& into, std::size_t bytes_max, WebSocketPart& part) {
  using Event = ws::FrameParser::Event;
  for (;;) {
    if (input_.empty()) return Step::input;
    const std::size_t before = into.size();
    const Result<Event> event = compression_ == nullptr ? parser_.parse(input_, into, bytes_max)
                                                        : parse_compressible(into, bytes_max);
    if (!event) return violate(event.error());
    switch (*event) {
      case Event::none:
        return Step::input;
      case Event::ping:
        handle_ping();
        break;
      case Event::pong:
        handle_pong();
        break;
      case Event::close:
        handle_close();
        return Step::failed;
      case Event::data:
      case Event::message_end:
        if (compression_ != nullptr && parser_.is_compressed()) {
          compression_->has_input = true;
          compression_->received_ends_message = *event == Event::message_end;
          return Step::again;
        }
        part = {.bytes = into.size() - before,
                .is_text = parser_.is_text(),
                .is_last = *event == Event::message_end};
        stats_.bytes_received += part.bytes;
        if (part.is_last) ++stats_.messages_received;
        return Step::part;
    }
  }
}

/// The payload of a compressed message is kept for decompress().
Result<ws::FrameParser::Event> Connection::parse_compressible(Buffer& into, std::size_t bytes_max) {
  Buffer payload;
  const Result<ws::FrameParser::Event> event = parser_.parse(input_, payload, bytes_max);
  if (!payload.empty())
    (parser_.is_compressed() ? compression_->received : into).append(std::move(payload));
  return event;
}

Connection::Step Connection::decompress(Buffer& into, std::size_t bytes_max, WebSocketPart& part) {
  Compression& compression = *compression_;
  Buffer piece;
  const auto progress = compression.decompress(compression.received,
                                               compression.received_ends_message, piece, bytes_max);
  if (!progress) return violate(progress.error());
  if (parser_.is_text() && !compression.validator.append(piece))
    return violate(WebSocketError::invalid_utf8);
  if (progress->is_done) {
    if (parser_.is_text() && !compression.validator.is_complete())
      return violate(WebSocketError::invalid_utf8);
    compression.validator.restart();
  }
  if (progress->is_done || progress->added < bytes_max) compression.has_input = false;
  if (progress->added == 0 && !progress->is_done) return Step::input;
  into.append(std::move(piece));
  part = {.bytes = progress->added, .is_text = parser_.is_text(), .is_last = progress->is_done};
  stats_.bytes_received += part.bytes;
  if (part.is_last) ++stats_.messages_received;
  return Step::part;
}

/// Control frames are limited within an interval: a connection without messages may last.
void Connection::restart_expired_control_count() noexcept {
  using tambour::detail::base::saturating_add;
  if (saturating_add(control_counted_since_, control_interval) >= loop_.now()) return;
  control_counted_since_ = loop_.now();
  parser_.restart_control_frames();
}

/// Only the last of several pings is answered if the peer does not read: RFC 6455, section 5.5.3.
void Connection::handle_ping() {
  ++stats_.pings_received;
  if (!has_sent_close_) answer_ping();
}

void Connection::handle_pong() noexcept {
  ++stats_.pongs_received;
  if (pinged_at_ == never) return;
  round_trip_time_ = loop_.now() - last_ping_at_;
  pinged_at_ = never;
}

void Connection::handle_close() {
  has_received_close_ = true;
  close_code_ = parser_.close_code();
  if (!parser_.control_payload().empty()) {
    if (texts_ == nullptr) texts_ = std::make_unique<Texts>();
    texts_->close_reason = parser_.control_payload();
  }
  if (!has_sent_close_) {
    // A code that was not sent cannot be returned.
    static_cast<void>(append_close(close_code_, {}));
    start_close_timer();
    start_writing();
  }
  end_receiving(StreamError::eof);
}

/// The peer has broken the protocol or a limit: tells it why. What it sends after that is discarded
/// by close().
Connection::Step Connection::violate(const Error& error) {
  if (!has_sent_close_) {
    static_cast<void>(append_close(ws::close_code_for(error), {}));
    start_close_timer();
    start_writing();
  }
  end_receiving(error);
  return Step::failed;
}

void Connection::begin_wait() noexcept {
  start_writing();
  deferred_write_.reset();
  if (stream_.is_socket()) release_backlog();  // Other streams need it for each message.
  if (error_) return;
  if (!PeerTimers::is_started(*this) && options_->ping_interval > Duration::zero())
    start_peer_timer(options_->ping_interval);
}

Result<> Connection::end_wait(Result<std::size_t> received) {
  if (received && *received > 0) {
    received_at_ = loop_.now();
    restart_expired_control_count();
    return {};
  }
  if (error_) return std::unexpected(error_);
  // The task was asked to stop. It may receive again.
  if (!received && received.error() == system_error(ECANCELED) && stream_.is_open())
    return std::unexpected(received.error());
  fail(received ? Error(StreamError::truncated) : received.error());
  return std::unexpected(receive_error_);
}

/// Nothing will be received any more. Frames can still be sent.
void Connection::end_receiving(const Error& error) noexcept {
  if (receive_error_) return;
  receive_error_ = error;
  input_.clear();
  message_.clear();
  if (waits_ != nullptr) waits_->ended.set();
}

/// The connection has ended.
void Connection::fail(const Error& error) noexcept {
  if (!error_) error_ = error;
  end_receiving(error);
  PeerTimers::stop(loop_, *this);
  if (backlog_ != nullptr) backlog_->progress_timer.stop();
  ignore_shutdown();
  drain_.reset();
  queue_.clear();
  stream_.close();
  wake_senders();
}

void Connection::abort() noexcept { fail(system_error(ECANCELED)); }

void PeerTimers::run() noexcept {
  wheel_.expire(core_.now_ns(), [this](Node& node) {
    static_cast<PeerTimer&>(node).is_due_ = true;
    due_.push_back(node);
  });
  while (Node* const node = due_.front()) {
    auto& timer = static_cast<PeerTimer&>(*node);
    leave(timer);
    static_cast<Connection&>(timer).check_peer();
  }
  if (wheel_.size() > 0) timer_->start_at(TimePoint(Duration(wheel_.next_ns())));
}

void Connection::start_peer_timer(Duration delay) noexcept {
  start_peer_timer(tambour::detail::base::saturating_add(loop_.now(), delay));
}

/// Runs when a ping may be due, or an answer overdue.
void Connection::check_peer() noexcept {
  using tambour::detail::base::saturating_add;
  release_backlog();
  if (is_close_limited_) return fail(system_error(ETIMEDOUT));
  if (!is_receiving_) return start_peer_timer(options_->ping_interval);
  if (pinged_at_ != never && received_at_ >= pinged_at_) pinged_at_ = never;
  if (pinged_at_ != never && options_->pong_timeout > Duration::zero()) {
    const TimePoint overdue = saturating_add(pinged_at_, options_->pong_timeout);
    if (overdue <= loop_.now()) return fail(system_error(ETIMEDOUT));
    return start_peer_timer(overdue);
  }
  const TimePoint due = saturating_add(received_at_, options_->ping_interval);
  if (due > loop_.now()) return start_peer_timer(due);
  send_keep_alive();
  if (!error_)
    start_peer_timer(options_->pong_timeout > Duration::zero() ? options_->pong_timeout
                                                               : options_->ping_interval);
}

void Connection::send_keep_alive() {
  if (has_sent_close_) return;
  const Result<> pinged = ping({});
  // If bytes wait to be sent, the time limit of writes applies.
  if (!pinged && pinged.error() != system_error(EAGAIN)) fail(pinged.error());
}

void Connection::close_on(std::stop_token token) {
  drain_ = std::make_unique<std::stop_callback<Drain>>(std::move(token), Drain{*this});
}

}  // namespace tambour::http::detail::websocket
