// Whether waiting without sleeping is worth it.
//
// Waking an idle processor takes the kernel longer than a whole round trip takes two busy ones. So
// a loop whose events come close upon one another does better to keep asking for a while; one whose
// events are rare does better to sleep. What decides is how long the last waits took.
#pragma once

#include <cstdint>

namespace tambour::loop {

class Spin {
 public:
  explicit Spin(std::int64_t longest_ns) noexcept
      : longest_ns_(longest_ns > 0 ? longest_ns : 0), usual_wait_ns_(longest_ns_) {}

  [[nodiscard]] bool enabled() const noexcept { return longest_ns_ != 0; }

  /// How long to keep asking before sleeping.
  [[nodiscard]] std::int64_t budget_ns() const noexcept {
    return usual_wait_ns_ <= longest_ns_ ? longest_ns_ : 0;
  }

  /// A wait has ended with an event.
  void note_wait(std::int64_t waited_ns) noexcept {
    // A moving average over about eight waits. One long pause counts for no more than four times
    // the budget, so that a burst after a night of silence is noticed within a few events.
    const std::int64_t counted = waited_ns < 4 * longest_ns_ ? waited_ns : 4 * longest_ns_;
    usual_wait_ns_ += (counted - usual_wait_ns_) / 8;
  }

 private:
  std::int64_t longest_ns_;
  std::int64_t usual_wait_ns_;
};

}  // namespace tambour::loop
