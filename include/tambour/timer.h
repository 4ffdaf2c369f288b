// Deadlines: one-shot, repeating, and the idle timeout that is pushed back on every event.
#pragma once

#include <cmath>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
class Timers;
}  // namespace loop

/// Calls back when a time has come, never before. Resolution is that of the clock (nanoseconds);
/// how late depends on the kernel's timer slack (prctl(2), PR_SET_TIMERSLACK: 50 us by default).
///
/// Moving a deadline later, and stopping, is one store; the loop looks at the timer again when the
/// former deadline comes up. An idle timeout that is pushed back a million times costs a million
/// stores. Destruction, also inside the callback, is always allowed and silences the timer at once.
/// Timers with one deadline expire in no particular order. Belongs to the thread of its loop.
class Timer final : private Ready {
 public:
  using Function = Callback<void()>;

  /// Not started. Throws std::bad_alloc: the room that starting needs is reserved here, so that
  /// starting cannot fail.
  Timer(EventLoop& loop, Function function,
        std::source_location created_at = std::source_location::current());
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;
  ~Timer();

  /// Expires once, `delay` after this call; at the next turn where that is zero or negative, never
  /// where the sum is beyond the clock. A started timer is started anew.
  void start(Duration delay) noexcept;

  /// Expires after `delay` and every `interval` after that, measured from expiry to expiry;
  /// expiries that a busy loop missed are skipped. An interval of zero or less means once.
  void start(Duration delay, Duration interval) noexcept;

  /// Expires once at `deadline`; at the next turn if that is past.
  void start_at(TimePoint deadline) noexcept;

  /// As start(), for times in floating point. EINVAL where a time is not a number, and the timer
  /// is left as it was; infinity means never.
  template <class Rep, class Period>
    requires std::is_floating_point_v<Rep>
  [[nodiscard]] Result<> start(std::chrono::duration<Rep, Period> delay,
                               std::chrono::duration<Rep, Period> interval = {}) noexcept {
    if (std::isnan(delay.count()) || std::isnan(interval.count()))
      return std::unexpected(system_error(EINVAL));
    start(saturate(std::chrono::duration<double>(delay).count()),
          saturate(std::chrono::duration<double>(interval).count()));
    return {};
  }

  /// Pushes the deadline to `delay` after the time at which this turn of the loop began, which is
  /// when the loop learned of the event that is being handled: the idle timeout's own operation.
  /// Does not read the clock. Starts a stopped timer; keeps the interval.
  void reset(Duration delay) noexcept;

  /// The same, with the delay (for a repeating timer, the interval) that was last given.
  void reset() noexcept;

  /// A callback that was due in this turn does not come.
  void stop() noexcept;

  [[nodiscard]] bool started() const noexcept { return started_; }

  /// When it expires next; `never` while stopped.
  [[nodiscard]] TimePoint deadline() const noexcept {
    return started_ ? TimePoint(Duration(deadline_ns_)) : never;
  }

  using Ready::priority;
  using Ready::set_priority;

  /// Replaces what is called; allowed inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class loop::Timers;

  static Duration saturate(double seconds) noexcept {
    constexpr double limit = 9.2e9;  // Seconds; near the end of a 64-bit count of nanoseconds.
    if (seconds >= limit) return Duration::max();
    if (seconds <= -limit) return Duration::min();
    // Rounded up: a fraction of a nanosecond must not make the timer early.
    return Duration(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
  }

  static void run(Ready& ready);

  /// What was due in this turn does not come. A one-shot timer leaves the heap when it becomes due,
  /// so that the link, on another cache line, need seldom be looked at.
  void unqueue() noexcept {
    if (heap_index_ == 0 || repeating_) unlink();
  }
  void arm(std::int64_t deadline_ns) noexcept;
  void arm_after(std::int64_t from_ns, std::int64_t delay_ns) noexcept;

  // Small ones first: they fit into what the base leaves of its last word. A reset touches these
  // and period_ns_, and nothing else: half a cache line.
  bool started_ = false;
  bool repeating_ = false;
  std::uint32_t heap_index_ = 0;  ///< 0: not in the heap.
  loop::Core* core_;
  std::int64_t deadline_ns_ = 0;
  std::int64_t period_ns_ = 0;  ///< The interval if repeating, else the delay that was last given.
  std::int64_t queued_ns_ = 0;  ///< Where it stands in the heap: never later than the deadline.
  Function function_;
};

}  // namespace tambour
