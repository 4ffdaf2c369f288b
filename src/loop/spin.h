// Decides whether to busy-poll before sleeping.
//
// Waking an idle CPU takes the kernel longer than a whole round trip between two busy ones. If
// events arrive in quick succession, the loop should busy-poll for a while; if they are rare, it
// should sleep. The decision depends on the duration of recent waits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace tambour::detail::loop {

class Spin {
 public:
  explicit Spin(std::int64_t longest_ns) noexcept
      : longest_ns_(longest_ns > 0 ? longest_ns : 0), usual_wait_ns_(longest_ns_) {}

  [[nodiscard]] bool enabled() const noexcept { return longest_ns_ != 0; }

  /// How long to busy-poll before sleeping.
  [[nodiscard]] std::int64_t budget_ns() const noexcept {
    return usual_wait_ns_ <= longest_ns_ ? longest_ns_ : 0;
  }

  /// Call when a wait has ended with an event.
  void note_wait(std::int64_t waited_ns) noexcept {
    // A moving average over about eight waits. A wait counts for at most four times the budget, so
    // that a burst after a long idle period is noticed within a few events.
    const std::int64_t counted = std::min(waited_ns, base::saturating_multiply(longest_ns_, 4));
    usual_wait_ns_ += (counted - usual_wait_ns_) / 8;
  }

 private:
  std::int64_t longest_ns_;
  std::int64_t usual_wait_ns_;
};

}  // namespace tambour::detail::loop
