// Timers on the monotonic clock: one-shot, repeating, and idle timeouts that are reset on every
// event.
#pragma once

#include <cstdint>
#include <source_location>
#include <type_traits>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/loop_callback.h>
#include <tambour/detail/timer_node.h>

namespace tambour::detail::loop {
class Core;
class Timers;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Invokes its callback when its deadline has passed, never before. The resolution is that of the
/// clock (nanoseconds); how late a timer expires depends on the kernel's timer slack (prctl(2),
/// PR_SET_TIMERSLACK: 50 us by default).
///
/// Cost: starting, resetting and stopping a timer takes constant time, however many timers the loop
/// has, and allocates nothing.
/// Order: timers expire in the order of their deadlines; timers with equal deadlines, in the order
/// in which these were set.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback; the callback
/// is not invoked afterwards.
/// Thread: must be used on the loop's thread.
class Timer final : private detail::TimerNode, private detail::LoopCallback<Callback<void()>> {
 public:
  /// The callback.
  using Function = Callback<void()>;

  /// The timer is not started.
  Timer(EventLoop& loop, Function function,
        std::source_location created_at = std::source_location::current());
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;
  ~Timer();

  /// Expires once, `delay` after this call. If `delay` is zero or negative, the timer expires in
  /// the next iteration; if the sum exceeds the range of the clock, it never expires. Restarts a
  /// started timer.
  void start(Duration delay) noexcept;

  /// Expires after `delay` and then every `interval`, measured from expiry to expiry. Expiries that
  /// a busy loop missed are skipped. If `interval` is zero or negative, the timer expires once.
  void start(Duration delay, Duration interval) noexcept;

  /// Expires once at `deadline`, or in the next iteration if `deadline` has passed.
  void start_at(TimePoint deadline) noexcept;

  /// Expires after `delay` and then every `interval`, with floating-point durations. Infinity means
  /// never. If a duration is NaN, fails with EINVAL and leaves the timer unchanged.
  template <class Rep, class Period>
    requires std::is_floating_point_v<Rep>
  [[nodiscard]] Result<> start(std::chrono::duration<Rep, Period> delay,
                               std::chrono::duration<Rep, Period> interval = {}) noexcept {
    return start_seconds(std::chrono::duration<double>(delay).count(),
                         std::chrono::duration<double>(interval).count());
  }

  /// Sets the deadline to `delay` after EventLoop::now(), the time at which the loop learned of the
  /// event that is being handled. Intended for idle timeouts. Does not read the clock. Starts a
  /// stopped timer; keeps the interval.
  void reset(Duration delay) noexcept;

  /// Calls reset(delay) with the delay (for a repeating timer, the interval) that was given last.
  void reset() noexcept;

  /// Stops the timer. A callback that was due in this iteration is not invoked.
  void stop() noexcept;

  /// True from start() until the timer is stopped, or has expired without an interval.
  [[nodiscard]] bool is_started() const noexcept { return started_; }

  /// The next expiry; `never` if the timer is stopped.
  [[nodiscard]] TimePoint deadline() const noexcept {
    return started_ ? TimePoint(Duration(deadline_ns_)) : never;
  }

  /// From -2, invoked last, to 2, among the callbacks that are due in an iteration; default: 0.
  /// Other values are clamped.
  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class detail::loop::Timers;

  Result<> start_seconds(double delay, double interval) noexcept;

  static void run(ReadyNode& ready);

  using ReadyNode::linked;
  using ReadyNode::unlink;

  /// Removes a due callback of this iteration. A one-shot timer leaves the wheel when it becomes
  /// due, so this seldom has to read the link of the ready queue.
  void unqueue() noexcept {
    if (!in_wheel() || repeating_) unlink();
  }
  /// Many due timers are spread over much memory.
  void prefetch_hinted() const noexcept {
    const auto* const other = static_cast<const Timer*>(hinted());
    if (other == nullptr) return;
    __builtin_prefetch(other);
    __builtin_prefetch(&other->function_);
  }
  void arm(std::int64_t deadline_ns) noexcept;
  void arm_after(std::int64_t from_ns, std::int64_t delay_ns) noexcept;
};

}  // namespace tambour

#pragma GCC visibility pop
