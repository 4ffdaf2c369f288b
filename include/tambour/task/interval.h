// Periodic work in a task.
#pragma once

#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <source_location>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

/// What an Interval does after ticks were missed, because the task or the loop was busy or the
/// process was stopped. Example: a period of 10 s, and the tick of 0:10 was returned at 0:35.
enum class MissedTicks : std::uint8_t {
  /// The missed ticks are returned one after another, each in its own iteration, until none is
  /// left: 0:20 and 0:30 at once, then 0:40. For work that must be done a certain number of times.
  burst,
  /// The next tick is one period after the late one was returned: 0:45, 0:55. For work that needs
  /// a pause between two runs. A tick is late after 5 ms or, if it is shorter, one period.
  delay,
  /// The missed ticks are skipped, and the next tick is at a multiple of the period: 0:40, 0:50.
  /// Like a repeating Timer.
  skip,
};

/// Ticks at multiples of a period. Unlike a loop with sleep_for(), it does not drift by the time
/// that the work takes:
///
///   Interval every_second(loop, 1s);
///   while (co_await every_second.tick()) report();
///
/// The first tick is one period after the construction. The clock is monotonic and does not advance
/// while the system is suspended, so no ticks are missed by a suspension; for times of day use
/// sleep_until(WallTime).
/// Cancellation: a tick() that fails has not consumed its tick.
/// Thread: must be used on the loop's thread, which is checked. One task at a time may await
/// tick(); a second one aborts with a message.
/// Lifetime: if the interval is destroyed while a task waits, the wait fails with ECANCELED.
class Interval {
 public:
  /// `period` must be positive, or the constructor aborts with a message.
  Interval(EventLoop& loop, Duration period, MissedTicks missed = MissedTicks::skip,
           std::source_location created_at = std::source_location::current()) noexcept;
  Interval(const Interval&) = delete;
  Interval& operator=(const Interval&) = delete;
  ~Interval();

  class Tick;

  /// Waits for the next tick, at least until the next iteration, and returns its scheduled time,
  /// even if it is late. Fails with ECANCELED.
  [[nodiscard]] Tick tick() noexcept;

  /// Sets the next tick to one period from now, or to `time`; later ticks follow at multiples of
  /// the period. No task may be waiting, or the call aborts with a message.
  void reset() noexcept;
  void reset_at(TimePoint time) noexcept;

  /// The period that was given to the constructor.
  [[nodiscard]] Duration period() const noexcept { return period_; }
  /// The time of the next tick; may have passed.
  [[nodiscard]] TimePoint next() const noexcept { return next_; }
  /// The number of ticks that MissedTicks::skip has skipped.
  [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_; }

 private:
  void begin_wait(Tick& tick) noexcept;
  void check_not_waiting() const noexcept;
  /// Consumes the tick that is due, and returns its time.
  [[nodiscard]] TimePoint consume() noexcept;

  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  Duration period_;
  TimePoint next_;
  MissedTicks missed_;
  std::uint64_t skipped_ = 0;
  Tick* waiting_ = nullptr;
  std::source_location created_at_;
};

/// The awaitable of tick(). May be moved until it is awaited.
class [[nodiscard]] Interval::Tick final : private detail::Sleep {
 public:
  static constexpr bool is_cancel_safe = true;

  explicit Tick(Interval& interval) noexcept : Sleep(interval.created_at_), interval_(&interval) {}
  Tick(Tick&& other) noexcept
      : Sleep(static_cast<Sleep&&>(other), "Interval::tick()"),
        interval_(std::exchange(other.interval_, nullptr)) {}
  Tick& operator=(Tick&&) = delete;
  ~Tick() { end_wait(); }

  using Sleep::await_ready;

  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_sleep_until(awaiting, interval_->next_, at);
    interval_->begin_wait(*this);
    sleep(awaiting, [this](Timer& timer) { timer.start_at(interval_->next_); });
  }

  Result<TimePoint> await_resume() noexcept {
    if (is_cancelled()) return std::unexpected(system_error(ECANCELED));
    end_wait();
    return interval_->consume();
  }

 private:
  friend class Interval;
  void end_wait() noexcept {
    if (interval_ != nullptr && interval_->waiting_ == this) interval_->waiting_ = nullptr;
  }

  Interval* interval_;  ///< Null: it was destroyed during the wait.
};

inline Interval::Tick Interval::tick() noexcept { return Tick(*this); }

}  // namespace tambour

#pragma GCC visibility pop
