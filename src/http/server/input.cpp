// Input: the time limits of reads.
#include "http/server/input.h"

#include <cerrno>
#include <utility>

namespace tambour::http {

Input::Input(EventLoop& loop, InterruptibleStream& stream)
    : stream_(stream), timer_(loop, [this] {
        has_expired_ = true;
        stream_.stop_waiting(false);
        if (limits_writes_) stream_.stop_waiting(true);
      }) {}

void Input::begin(Duration limit) noexcept {
  has_expired_ = false;
  timer_.stop();  // A read that was destroyed may have left it.
  if (limit > Duration::zero()) timer_.start(limit);
}

void Input::begin_until(TimePoint deadline) noexcept {
  begin(Duration::zero());
  if (deadline != never) timer_.start_at(deadline);
}

Result<std::size_t> Input::end(Result<std::size_t> got) noexcept {
  timer_.stop();
  if (!got && has_expired_) return std::unexpected(system_error(ETIMEDOUT));
  return got;
}

void Input::shorten(TimePoint deadline) noexcept {
  if (!timer_.started() || deadline < timer_.deadline()) timer_.start_at(deadline);
}

}  // namespace tambour::http
