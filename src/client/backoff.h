// Delays between attempts to connect: exponential back-off with jitter.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tambour/clock.h>

namespace tambour::client {

class Backoff {
 public:
  /// Negative durations count as zero.
  Backoff(Duration first, Duration max) noexcept
      : max_(std::max(max, Duration::zero())),
        first_(std::clamp(first, Duration::zero(), max_)),
        next_(first_) {}

  /// Returns a delay between half of the current one and all of it, and doubles the current one.
  Duration next(std::uint64_t random) noexcept {
    const auto half = static_cast<std::uint64_t>(next_.count() / 2);
    const Duration delay = next_ - Duration(static_cast<std::int64_t>(random % (half + 1)));
    next_ = std::min(next_, max_ / 2) * 2;
    return delay;
  }

  void reset() noexcept { next_ = first_; }

 private:
  Duration max_;
  Duration first_;
  Duration next_;
};

}  // namespace tambour::client
