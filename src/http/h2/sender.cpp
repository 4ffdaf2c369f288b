// H2Sender: the writes of a connection, and which stream sends next.
#include "http/h2/sender.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "io/write_size.h"
#include "loop/core.h"

namespace tambour::http {
namespace {

/// Of one write. More would delay the responses that become urgent meanwhile.
constexpr std::size_t written_bytes = detail::io::segment_bytes_max;
/// A shorter DATA frame is not begun at the end of a write.
constexpr std::size_t data_bytes_min = 1024;
/// A body that is sent with its head. It is copied, and delays others by less than a packet.
constexpr std::size_t short_body_bytes = 1024;
/// A part of a body, such as a message of a WebSocket, that is queued before it is asked for.
constexpr std::size_t queued_at_once_max = std::size_t{64} * 1024;

}  // namespace

H2Sender::H2Sender(SocketStream& stream, const Limits& limits, H2Memory& memory,
                   Callback<void(H2SendingStream&)> sent, Callback<void()> failed)
    : loop_(stream.loop()),
      stream_(stream),
      limits_(limits),
      memory_(memory),
      sent_(std::move(sent)),
      failed_(std::move(failed)),
      output_(stream, limits.write_timeout),
      written_(loop_),
      has_capacity_(loop_),
      soon_(loop_, [this] { start_writing(); }) {}

std::int64_t H2Sender::now_ns() const noexcept { return detail::loop::core_of(loop_).now_ns(); }

void H2Sender::wake() noexcept {
  if (!is_writing_ && !is_held_) soon_.start(Duration::zero());
}

void H2Sender::start_writing() noexcept {
  is_held_ = false;
  if (soon_.is_started()) soon_.stop();
  if (!is_writing_) write();
}

void H2Sender::write() noexcept {
  is_writing_ = true;
  for (;;) {
    fill();
    if (!output_.begin_writing()) break;
    ++started_;
    write_.emplace(*this, stream_);
    if (!write_->start()) return;
    end_write();
  }
  is_writing_ = false;
  if (error()) stream_.close();
  wake_waiting();
  if (error() && failed_) failed_();
}

void H2Sender::end_write() noexcept {
  const Result<> written = write_->result();
  write_.reset();
  output_.end_writing(written);
  completed_ = started_;
  written_at_ = loop_.now();
  wake_waiting();
}

Task<Result<>> H2Sender::flush_frames() {
  const std::uint64_t batch = started_ + (output_.queue().empty() ? 0 : 1);
  start_writing();
  while (completed_ < batch && !error()) {
    written_.reset();
    const Result<> waited = co_await written_.wait();
    if (!waited) co_return waited;
  }
  if (error()) co_return std::unexpected(error());
  co_return {};
}

void H2Sender::wake_waiting() noexcept {
  written_.set();
  std::erase_if(waiting_, [this](H2SendingStream* stream) {
    if (!error() && !is_sent(*stream)) return false;
    stream->outgoing().is_waiting = false;
    stream->wake_writer();
    return true;
  });
}

/// What the next DATA frame of the write may have; 0: the write is full. A few bytes more would
/// need another segment, and over TLS another record and system call.
std::size_t H2Sender::data_bytes_max() noexcept {
  constexpr std::size_t frame_bytes_min = detail::h2::frame_head_size + data_bytes_min;
  const std::size_t queued = output_.queue().size();
  if (queued > written_bytes - frame_bytes_min) return 0;
  return written_bytes - queued - detail::h2::frame_head_size;
}

/// Moves DATA to the queue.
void H2Sender::fill() {
  if (window_ > 0) set_blocked(patience_, is_blocked_, false);
  try {
    while (window_ > 0) {
      H2SendingStream* const stream = next();
      if (stream == nullptr) break;
      const std::size_t bytes_max = data_bytes_max();
      if (bytes_max == 0) break;
      send_data(*stream, bytes_max);
    }
  } catch (const std::bad_alloc&) {
    output_.fail(system_error(ENOMEM));
  }
  set_blocked(patience_, is_blocked_, window_ <= 0 && next() != nullptr);
  if (!is_unsent_low_ && data_bytes_max() == 0) keep_unsent_low();
}

/// Otherwise the kernel buffers megabytes, and an urgent response waits behind them: tcp(7).
void H2Sender::keep_unsent_low() noexcept {
  is_unsent_low_ = true;
  if (limits_.socket_unsent_bytes_max == 0) return;
  // Sockets that are not TCP do not have the option.
  const auto bytes = static_cast<int>(limits_.socket_unsent_bytes_max);  // Read as unsigned.
  static_cast<void>(stream_.set_option(IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes));
}

void H2Sender::set_blocked(detail::net::RateBudget& patience, bool& was_blocked,
                           bool is_blocked) noexcept {
  if (is_blocked == was_blocked) return;
  was_blocked = is_blocked;
  if (is_blocked) {
    patience.resume(now_ns());
  } else {
    patience.suspend(now_ns());
  }
}

/// For a budget that is not being spent.
void H2Sender::earn(detail::net::RateBudget& patience, std::size_t bytes) noexcept {
  patience.resume(now_ns());
  patience.earn(bytes, limits_.rate_min, now_ns());
  patience.suspend(now_ns());
}

H2SendingStream* H2Sender::next() noexcept {
  if (unsent_streams_ == 0) return nullptr;
  for (const SendOrder& streams : ready_) {
    if (!streams.empty()) return streams.front();
  }
  return nullptr;
}

void H2Sender::send_data(H2SendingStream& stream, std::size_t bytes_max) {
  H2Outgoing& outgoing = stream.outgoing();
  const auto allowed = static_cast<std::size_t>(std::min(window_, outgoing.window));
  const std::size_t size = std::min<std::size_t>(
      {allowed, bytes_max, detail::h2::frame_size_max_min, outgoing.unsent.size()});
  const bool is_end = outgoing.ends && size == outgoing.unsent.size();
  const bool has_trailers = is_end && !outgoing.trailers.empty();
  detail::h2::append_data(output_.queue(), stream.id(), outgoing.unsent.take(size),
                          is_end && !has_trailers);
  remove_unsent(stream, size);
  earn(outgoing.patience, size);
  earn(patience_, size);
  note_data(stream, size);
  if (outgoing.priority.is_incremental) {
    stream.unlink();
    ready_[outgoing.priority.urgency].push_back(stream);
  }
  update(stream);
  if (has_trailers) {
    end(stream);
  } else if (is_end) {
    outgoing.has_ended = true;
    sent_(stream);
  }
}

bool H2Sender::can_send(const H2SendingStream& stream, std::size_t bytes) noexcept {
  const auto size = static_cast<std::int64_t>(bytes);
  return !is_writing_ && stream.outgoing().unsent.empty() && next() == nullptr &&
         output_.queue().size() < written_bytes && size <= window_ &&
         size <= stream.outgoing().window;
}

void H2Sender::note_data(H2SendingStream& stream, std::size_t bytes) noexcept {
  ++data_frames_;
  window_ -= static_cast<std::int64_t>(bytes);
  stream.outgoing().window -= static_cast<std::int64_t>(bytes);
  queued(stream);
}

template <class Body>
bool H2Sender::send_short(H2SendingStream& stream, const Body& body) {
  if (body.size() > short_body_bytes || !can_send(stream, body.size())) return false;
  detail::h2::append_short_data(output_.queue(), stream.id(), body, true);
  note_data(stream, body.size());
  stream.outgoing().has_ended = true;
  wake();
  sent_(stream);
  return true;
}

bool H2Sender::send_short_body(H2SendingStream& stream, const Buffer& body) {
  return send_short(stream, body);
}

bool H2Sender::send_short_body(H2SendingStream& stream, std::string_view body) {
  return send_short(stream, body);
}

bool H2Sender::send_at_once(H2SendingStream& stream, Buffer& bytes) noexcept {
  if (bytes.empty()) return true;
  if (bytes.size() > queued_at_once_max || !can_send(stream, bytes.size())) return false;
  try {
    if (bytes.size() <= short_body_bytes) {
      detail::h2::append_short_data(output_.queue(), stream.id(), bytes, false);
      note_data(stream, bytes.size());
      bytes.clear();
    }
    while (!bytes.empty()) {
      const std::size_t size = std::min<std::size_t>(bytes.size(), detail::h2::frame_size_max_min);
      detail::h2::append_data(output_.queue(), stream.id(), bytes.take(size), false);
      note_data(stream, size);
    }
  } catch (const std::bad_alloc&) {
    output_.fail(system_error(ENOMEM));
  }
  wake();
  return true;
}

void H2Sender::add_unsent(H2SendingStream& stream, std::size_t bytes) noexcept {
  if (stream.outgoing().unsent.size() == bytes) ++unsent_streams_;
  unsent_bytes_ += bytes;
  memory_.add(bytes);
}

void H2Sender::remove_unsent(H2SendingStream& stream, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const bool was_full = is_full();
  unsent_bytes_ -= bytes;
  if (stream.outgoing().unsent.empty()) --unsent_streams_;
  memory_.remove(bytes);
  if (was_full && !is_full()) has_capacity_.set();
}

Task<Result<>> H2Sender::wait_for_capacity() {
  has_capacity_.reset();
  co_return co_await has_capacity_.wait();
}

void H2Sender::update(H2SendingStream& stream) noexcept {
  H2Outgoing& outgoing = stream.outgoing();
  const bool has_bytes = !outgoing.unsent.empty();
  const bool is_ready = has_bytes && outgoing.window > 0;
  set_blocked(outgoing.patience, outgoing.is_blocked, has_bytes && !is_ready);
  if (is_ready == stream.linked()) return;
  if (!is_ready) return stream.unlink();
  ready_[outgoing.priority.urgency].push_back(stream);
  wake();
}

bool H2Sender::is_stalled(H2SendingStream& stream) const noexcept {
  const H2Outgoing& outgoing = stream.outgoing();
  return outgoing.is_blocked && limits_.write_timeout > Duration::zero() &&
         outgoing.patience.deadline_ns(limits_.write_timeout.count()) <= now_ns();
}

bool H2Sender::is_stalled() const noexcept {
  return is_blocked_ && limits_.write_timeout > Duration::zero() &&
         patience_.deadline_ns(limits_.write_timeout.count()) <= now_ns();
}

void H2Sender::set_priority(H2SendingStream& stream, detail::h2::Priority priority) noexcept {
  H2Outgoing& outgoing = stream.outgoing();
  const std::uint8_t before = std::exchange(outgoing.priority, priority).urgency;
  if (!stream.linked() || before == priority.urgency) return;
  stream.unlink();
  ready_[priority.urgency].push_back(stream);
}

void H2Sender::drop(H2SendingStream& stream) noexcept {
  H2Outgoing& outgoing = stream.outgoing();
  const std::size_t dropped = outgoing.unsent.size();
  outgoing.unsent.clear();
  remove_unsent(stream, dropped);
  outgoing.ends = false;
  update(stream);
}

void H2Sender::add_waiting(H2SendingStream& stream) {
  if (stream.outgoing().is_waiting) return;
  waiting_.push_back(&stream);
  stream.outgoing().is_waiting = true;
}

void H2Sender::remove(H2SendingStream& stream) noexcept {
  drop(stream);
  if (std::exchange(stream.outgoing().is_waiting, false)) std::erase(waiting_, &stream);
}

void H2Sender::end(H2SendingStream& stream) {
  H2Outgoing& outgoing = stream.outgoing();
  if (outgoing.trailers.empty()) {
    detail::h2::append_data_head(output_.queue(), stream.id(), 0, true);
  } else {
    // The stream has checked them.
    static_cast<void>(
        detail::h2::append_trailers(output_.queue(), encoder_, outgoing.trailers,
                                    {.stream_id = stream.id(), .frame_size_max = frame_size_max_}));
  }
  outgoing.has_ended = true;
  queued(stream);
  wake();
  sent_(stream);
}

bool H2Sender::add_window(H2SendingStream& stream, std::int64_t bytes) noexcept {
  stream.outgoing().window += bytes;
  if (stream.outgoing().window > detail::h2::window_size_max) return false;
  update(stream);
  return true;
}

bool H2Sender::add_window(std::uint32_t bytes) noexcept {
  window_ += bytes;
  if (window_ > detail::h2::window_size_max) return false;
  if (next() != nullptr) wake();
  return true;
}

}  // namespace tambour::http
