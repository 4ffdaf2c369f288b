// IdleWaits: ends the waits whose deadlines have been reached.
#include "http/server/idle/idle_waits.h"

#include <algorithm>
#include <cerrno>

#include <tambour/loop/event_loop.h>

#include "base/clock.h"
#include "base/failure.h"

namespace tambour::http {

IdleWait::IdleWait(IdleWaits& waits, IdleKind kind, Stream& stream, TimePoint deadline)
    : waits_(waits), stream_(stream), deadline_(deadline), kind_(kind) {
  IdleWaits::Queue& queue = waits.queue(kind);
  if (!queue.timer) queue.timer.emplace(stream.loop(), [&queue] { IdleWaits::check(queue); });
  queue.waits.push_back(*this);
  if (queue.waits.front() == this) IdleWaits::arm(queue);
}

IdleWait::~IdleWait() {
  unlink();
  IdleWaits::Queue& queue = waits_.queue(kind_);
  if (queue.waits.empty()) queue.timer.reset();
}

Result<std::size_t> IdleWait::finish(Result<std::size_t> received) noexcept {
  if (!received && has_expired_) return detail::base::failure(ETIMEDOUT);
  return received;
}

void IdleWaits::check(Queue& queue) noexcept {
  while (IdleWait* const wait = queue.waits.front()) {
    if (wait->deadline_ > wait->stream_.loop().now()) break;
    wait->unlink();
    wait->has_expired_ = true;
    wait->stream_.cancel_read();
  }
  arm(queue);
}

/// If the first wait ends, the timer is armed too early for the next one, and is armed again then.
void IdleWaits::arm(Queue& queue) noexcept {
  const IdleWait* const first = queue.waits.front();
  if (first != nullptr && first->deadline_ != never) queue.timer->start_at(first->deadline_);
}

void IdleWaits::shorten(Duration limit) noexcept {
  for (Queue& queue : queues_) {
    IdleWait* wait = queue.waits.front();
    if (wait == nullptr) continue;
    const TimePoint end = detail::base::saturating_add(wait->stream_.loop().now(), limit);
    for (; wait != nullptr; wait = queue.waits.after(*wait))
      wait->deadline_ = std::min(wait->deadline_, end);
    arm(queue);
  }
}

}  // namespace tambour::http
