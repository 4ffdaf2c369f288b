// Timers on the wall clock (CLOCK_REALTIME), which can be set: libev's ev_periodic.
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/loop_callback.h>
#include <tambour/detail/ready_node.h>

namespace tambour::detail::events {
class WallTimers;
}  // namespace tambour::detail::events
namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Invokes its callback when the wall clock has reached a time, never before. If the clock is set
/// forward or back, or the machine resumes from suspend, the new time takes effect at once
/// (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). For timeouts, which must not depend on changes of
/// the clock, use Timer.
///
/// If the clock jumps over several expiry times, or a busy loop misses them, the callback is
/// invoked once, late, for the last of them.
///
/// Ownership: owns its callback.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback; the callback
/// is not invoked afterwards. It may outlive its loop.
/// Thread: must be used on the loop's thread.
/// Loop: a started WallTimer keeps the loop running. suspend_timers() does not suspend it.
class WallTimer final : private detail::ReadyNode, private detail::LoopCallback<Callback<void()>> {
 public:
  /// The callback.
  using Function = Callback<void()>;
  /// Computes the next expiry after `now`; WallTime::max() means never. Must not stop, start or
  /// destroy its timer, which is checked.
  using Next = Callback<WallTime(WallTime now)>;

  /// The timer is not started.
  WallTimer(EventLoop& loop, Function function,
            std::source_location created_at = std::source_location::current()) noexcept;
  WallTimer(WallTimer&& other) noexcept;
  WallTimer& operator=(WallTimer&& other) noexcept;
  ~WallTimer();

  /// Expires once, at `time`, or in the next iteration if `time` has passed. Like the other start
  /// functions, it restarts a started timer. Fails with EMFILE, ENFILE or ENOMEM, because the
  /// loop's first wall-clock timer needs a timerfd and every one needs memory, and with ERANGE if a
  /// select loop cannot watch the timerfd. After an error the timer is stopped.
  [[nodiscard]] Result<> start_at(WallTime time) noexcept;

  /// Expires at `offset` after 1970-01-01 00:00 UTC and at all multiples of `interval` before and
  /// after that: with an interval of one hour and no offset, at each full hour (UTC). Fails with
  /// EINVAL if `interval` is not positive.
  [[nodiscard]] Result<> start_every(Duration interval,
                                     Duration offset = Duration::zero()) noexcept;

  /// Expires at the times that `next` returns. The loop calls `next` now, before each callback, and
  /// after the clock was set. Use it for local time, calendars, or "the last Friday of the month".
  /// An exception thrown by `next` propagates out of this function or the loop's run(), and the
  /// timer is then stopped.
  [[nodiscard]] Result<> start_by(Next next);

  /// Calls `next` again in the next iteration, because its result has changed: for example with the
  /// time zone. No effect on timers without `next`.
  void recompute() noexcept;

  /// Stops the timer. A callback that was due is not invoked.
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return started_; }

  /// The next expiry as currently known; WallTime::max() if the timer is stopped. Inside the
  /// callback: the expiry after this one.
  [[nodiscard]] WallTime time() const noexcept {
    return started_ ? WallTime(Duration(deadline_ns_)) : WallTime::max();
  }

  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class detail::events::WallTimers;
  enum class Rule : std::uint8_t { once, interval, computed };

  static void run(ReadyNode& ready);
  [[nodiscard]] Result<> open() noexcept;
  void insert() noexcept;
  [[nodiscard]] std::int64_t time_after(std::int64_t now_ns);

  Rule rule_ = Rule::once;
  bool started_ = false;
  bool computing_ = false;        ///< next_ is being called.
  std::uint32_t heap_index_ = 0;  ///< 0: not in the heap.
  WallTimer* next_in_list_ = nullptr;
  std::int64_t deadline_ns_ = 0;
  std::int64_t interval_ns_ = 0;
  std::int64_t offset_ns_ = 0;
  Next next_;
};

}  // namespace tambour

#pragma GCC visibility pop
