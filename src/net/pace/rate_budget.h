// A time limit that a minimum rate extends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/clock.h"

namespace tambour::detail::net {

/// The time that a peer has for a message or a body: a limit, which each received byte extends by
/// 1/rate_min seconds. What is left never exceeds the limit, or a fast peer could save up hours.
/// All times are nanoseconds of the monotonic clock. Holds no timer.
class RateBudget {
 public:
  void start(std::int64_t now_ns) noexcept {
    started_ns_ = now_ns;
    is_started_ = true;
  }
  void stop() noexcept { is_started_ = false; }
  [[nodiscard]] bool is_started() const noexcept { return is_started_; }

  /// Alternatively, a budget that is spent only between resume() and suspend(). It begins
  /// suspended, with all of its limit; reset() makes it so again.
  void reset() noexcept { started_ns_ = 0; }
  void resume(std::int64_t now_ns) noexcept { started_ns_ += now_ns; }
  void suspend(std::int64_t now_ns) noexcept {
    started_ns_ = std::min(started_ns_, now_ns) - now_ns;
  }

  /// `bytes` were received. If `rate_min`, in bytes per second, is 0, they extend nothing.
  void earn(std::size_t bytes, std::size_t rate_min, std::int64_t now_ns) noexcept {
    if (rate_min == 0) return;
    started_ns_ = std::min(base::saturating_add(started_ns_, earned_ns(bytes, rate_min)), now_ns);
  }
  /// When a budget with this limit, which is being spent, is used up.
  [[nodiscard]] std::int64_t deadline_ns(std::int64_t limit_ns) const noexcept {
    return base::saturating_add(started_ns_, limit_ns);
  }

 private:
  [[nodiscard]] static std::int64_t earned_ns(std::size_t bytes, std::size_t rate_min) noexcept {
    constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    constexpr auto second_ns = static_cast<std::uint64_t>(base::ns_per_s);
    if (bytes > max / second_ns) return static_cast<std::int64_t>(max);
    return static_cast<std::int64_t>(bytes * second_ns / rate_min);
  }

  /// When a budget that has all of its limit would have started. While it is suspended, relative to
  /// the time at which it is resumed: minus the time that is spent.
  std::int64_t started_ns_ = 0;
  bool is_started_ = false;
};

}  // namespace tambour::detail::net
