// Backoff: the delays of a program's own attempts.
#include <tambour/net/backoff.h>

#include <algorithm>

#include "client/retry_delays.h"
#include "loop/core.h"

namespace tambour {

Backoff::Backoff(EventLoop& loop, const RetryPolicy& policy) noexcept
    : loop_(&loop), policy_(policy), next_(detail::client::RetryDelays(policy).delay()) {}

std::optional<Duration> Backoff::next() noexcept {
  const unsigned attempts_max = std::max(policy_.attempts_max, 1U);
  if (failures_ < RetryPolicy::unlimited) ++failures_;
  if (attempts_max != RetryPolicy::unlimited && failures_ >= attempts_max) return std::nullopt;
  detail::client::RetryDelays delays(policy_);
  delays.set_delay(next_);
  const Duration delay = delays.next(detail::loop::core_of(*loop_).backend().random());
  next_ = delays.delay();
  return delay;
}

void Backoff::reset() noexcept {
  failures_ = 0;
  next_ = detail::client::RetryDelays(policy_).delay();
}

}  // namespace tambour
