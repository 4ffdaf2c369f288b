// Delays between attempts: exponential back-off with jitter.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tambour/base/clock.h>
#include <tambour/net/retry_policy.h>

namespace tambour::detail::client {

class RetryDelays {
 public:
  explicit RetryDelays(const RetryPolicy& policy) noexcept
      : max_(std::max(policy.delay_max, Duration::zero())),
        first_(std::clamp(policy.delay, Duration::zero(), max_)),
        next_(first_),
        jitter_(policy.jitter > 0 ? std::min(policy.jitter, 1.0) : 0) {}  // NaN: none.

  /// Returns a delay from which a random part may be subtracted, and doubles the next one.
  Duration next(std::uint64_t random) noexcept {
    const auto range = static_cast<std::uint64_t>(static_cast<double>(next_.count()) * jitter_);
    // The type of count() differs between standard libraries.
    const auto less =
        std::min<std::int64_t>(static_cast<std::int64_t>(random % (range + 1)), next_.count());
    const Duration delay = next_ - Duration(less);
    next_ = std::min(next_, max_ / 2) * 2;
    return delay;
  }

  void reset() noexcept { next_ = first_; }

  /// The next delay, from which nothing has been subtracted.
  [[nodiscard]] Duration delay() const noexcept { return next_; }
  void set_delay(Duration delay) noexcept { next_ = delay; }

 private:
  Duration max_;
  Duration first_;
  Duration next_;
  double jitter_;
};

}  // namespace tambour::detail::client
