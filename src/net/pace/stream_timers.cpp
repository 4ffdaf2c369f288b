// The timers of a stream: no progress, minimum rates and deadlines.
#include "net/pace/stream_timers.h"

#include <cerrno>

#include "base/failure.h"

namespace tambour::detail::net {

ReadTimer::ReadTimer(Stream& stream)
    : stream_(stream), timer_(stream.loop(), [this] {
        has_expired_ = true;
        stream_.cancel_read();
      }) {}

void ReadTimer::start(Duration limit) noexcept {
  has_expired_ = false;
  timer_.stop();  // A read that was destroyed may have left it.
  if (limit > Duration::zero()) timer_.start(limit);
}

void ReadTimer::start_at(TimePoint deadline) noexcept {
  start(Duration::zero());
  if (deadline != never) timer_.start_at(deadline);
}

void ReadTimer::end_by(TimePoint deadline) noexcept {
  if (!timer_.is_started() || deadline < timer_.deadline()) timer_.start_at(deadline);
}

Result<std::size_t> ReadTimer::finish(Result<std::size_t> received) noexcept {
  timer_.stop();
  if (!received && has_expired_) return base::failure(ETIMEDOUT);
  return received;
}

WriteTimer::WriteTimer(Stream& stream, Callback<std::uint64_t()> unsent)
    : stream_(stream), unsent_(std::move(unsent)), timer_(stream.loop(), [this] { check(); }) {}

void WriteTimer::start(Duration limit, std::uint64_t unsent) noexcept {
  has_expired_ = false;
  limit_ = limit;
  unsent_before_ = unsent;
  if (limit > Duration::zero()) timer_.start(limit);
}

/// Ends a write that has made no progress since the timer was started.
void WriteTimer::check() noexcept {
  if (unsent_) {
    const std::uint64_t unsent = unsent_();
    if (std::exchange(unsent_before_, unsent) != unsent) return timer_.start(limit_);
  }
  has_expired_ = true;
  stream_.cancel_write();
}

Result<> WriteTimer::finish(Result<> written) noexcept {
  timer_.stop();
  if (!written && has_expired_) return base::failure(ETIMEDOUT);
  return written;
}

}  // namespace tambour::detail::net
