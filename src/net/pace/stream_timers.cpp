// The timers of a stream: no progress, minimum rates and deadlines.
#include "net/pace/stream_timers.h"

#include <cerrno>

#include <tambour/loop/event_loop.h>

#include "base/clock.h"
#include "base/failure.h"
#include "loop/core.h"

namespace tambour::detail::net {

ReadTimer::ReadTimer(Stream& stream)
    : stream_(stream), timer_(stream.loop(), [this] { check(); }) {}

void ReadTimer::start(Duration limit) noexcept {
  if (limit <= Duration::zero()) return start_at(never);
  // Not now(), which is the time before the program has computed.
  const TimePoint now{Duration(loop::core_of(stream_.loop()).clock_ns())};
  start_at(base::saturating_add(now, limit));
}

void ReadTimer::start_at(TimePoint deadline) noexcept {
  has_expired_ = false;
  deadline_ = never;  // A read that was destroyed may have left it.
  end_by(deadline);
}

void ReadTimer::end_by(TimePoint deadline) noexcept {
  if (deadline >= deadline_) return;
  deadline_ = deadline;
  if (!timer_.is_started() || deadline < timer_.deadline()) timer_.start_at(deadline);
}

void ReadTimer::check() noexcept {
  if (deadline_ == never) return;
  if (deadline_ > stream_.loop().now()) return timer_.start_at(deadline_);
  has_expired_ = true;
  stream_.cancel_read();
}

WriteTimer::WriteTimer(Stream& stream, Callback<std::uint64_t()> unsent)
    : stream_(stream), unsent_(std::move(unsent)), timer_(stream.loop(), [this] { check(); }) {}

void WriteTimer::start(Duration limit, std::uint64_t unsent) noexcept {
  has_expired_ = false;
  limit_ = limit;
  unsent_before_ = unsent;
  is_writing_ = limit > Duration::zero();
  is_new_ = true;
  if (!is_writing_ || (unsent_ && timer_.is_started())) return;
  is_new_ = false;
  timer_.start(limit);
}

void WriteTimer::stop() noexcept {
  is_writing_ = false;
  if (!unsent_) timer_.stop();
}

/// Ends a write that has made no progress since the timer was started.
void WriteTimer::check() noexcept {
  if (!is_writing_) return;
  if (unsent_) {
    const std::uint64_t unsent = unsent_();
    const bool is_new = std::exchange(is_new_, false);
    if (std::exchange(unsent_before_, unsent) != unsent || is_new) return timer_.start(limit_);
  }
  has_expired_ = true;
  stream_.cancel_write();
}

Result<> WriteTimer::finish(Result<> written) noexcept {
  stop();
  if (!written && has_expired_) return base::failure(ETIMEDOUT);
  return written;
}

}  // namespace tambour::detail::net
