// The timers of one loop: a timing wheel that holds the started timers, except those that are due.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tambour/loop/timer.h>

#include "base/mutant.h"
#include "base/ready_queue.h"
#include "base/timing_wheel.h"

namespace tambour::detail::loop {

using base::ReadyQueue;

class Timers {
 public:
  /// Sets a timer's deadline.
  void arm(Timer& timer, std::int64_t deadline_ns) noexcept {
    if (base::mutant == base::Mutant::pushed_back_lost && deadline_ns > timer.deadline_ns_ &&
        timer.in_wheel())
      return wheel_.cancel(timer);
    wheel_.arm(timer, deadline_ns);
  }

  void cancel(Timer& timer) noexcept {
    if (timer.in_wheel()) wheel_.cancel(timer);
  }

  /// The number of started timers that are not due. A repeating timer is started again when it
  /// becomes due.
  [[nodiscard]] std::size_t size() const noexcept { return wheel_.size(); }

  /// The next expiry: see TimingWheel::next_ns().
  [[nodiscard]] std::int64_t next_ns() noexcept { return wheel_.next_ns(); }

  /// Appends the timers that are due, in the order of their deadlines.
  void expire(std::int64_t now_ns, ReadyQueue& ready) noexcept {
    if (wheel_.is_expiry_due(now_ns)) expire_due(now_ns, ready);
  }

  /// Moves all deadlines by the same amount, which keeps their order.
  void shift(std::int64_t by_ns) noexcept { wheel_.shift(by_ns); }

  /// Stops and unlinks all timers.
  void abandon() noexcept;

 private:
  void expire_due(std::int64_t now_ns, ReadyQueue& ready) noexcept;
  void make_ready(Timer& timer, std::int64_t now_ns, ReadyQueue& ready) noexcept;

  base::TimingWheel wheel_;
};

}  // namespace tambour::detail::loop
