// Deadlines by the wall clock, which people and other programs set: libev's ev_periodic.
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>

#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
class WallTimers;
}  // namespace loop

/// CLOCK_REALTIME: nanoseconds since 1970, UTC, without leap seconds. Reaches to the year 2262.
using WallTime = std::chrono::sys_time<Duration>;

/// Calls back when the wall clock has come to a time, never before. Where the clock is set, forward
/// or back, timers go by the new time at once (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET), also
/// after the machine has slept. For timeouts, which must not depend on what the clock is set to,
/// use Timer.
///
/// Of times that the clock jumped over, or that a busy loop missed, the last counts: a timer is
/// called once for them, late.
///
/// Owns its callback. A started one keeps the loop running. Moves and is destroyed freely, inside
/// its own callback too, and falls silent at once. Belongs to the thread of its loop, which it may
/// outlive, silently. EventLoop::suspend() does not stop it.
class WallTimer final : private Ready {
 public:
  using Function = Callback<void()>;
  /// Is given the time, and returns the next one after it at which to call; WallTime::max() for
  /// never. Only calculates: does not stop, start or destroy its timer, which is checked.
  using Next = Callback<WallTime(WallTime now)>;

  WallTimer(EventLoop& loop, Function function,
            std::source_location created_at = std::source_location::current()) noexcept;
  WallTimer(WallTimer&& other) noexcept;
  WallTimer& operator=(WallTimer&& other) noexcept;
  ~WallTimer();

  /// Once, at `time`; at the next turn where that is past. A started timer is started anew, here
  /// and below. EMFILE, ENFILE, ENOMEM: the loop's first wall-clock timer needs a timerfd, and all
  /// of them memory; ERANGE: a select loop could not watch that. A failure leaves it stopped.
  Result<> start_at(WallTime time) noexcept;

  /// At `offset` after 1970 and every `interval` before and after that: with an interval of an hour
  /// and no offset, at each full hour (of UTC). EINVAL where the interval is not positive.
  Result<> start_every(Duration interval, Duration offset = Duration::zero()) noexcept;

  /// Whenever `next` says. It is asked now, before each call, and when the clock was set: the way
  /// to local time, calendars, and "the last Friday of the month". What it throws leaves this, or
  /// the loop, and the timer has then stopped.
  Result<> start_by(Next next);

  /// Asks `next` again, in the next turn: what it goes by, the time zone say, has changed. No
  /// effect on other timers.
  void ask_again() noexcept;

  /// A callback that was due does not come.
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return started_; }

  /// When it calls next, as things stand; WallTime::max() while stopped. In the callback: the time
  /// after this.
  [[nodiscard]] WallTime time() const noexcept {
    return started_ ? WallTime(Duration(deadline_ns_)) : WallTime::max();
  }

  using Ready::priority;
  using Ready::set_priority;

  /// Replaces what is called; allowed inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class loop::WallTimers;
  enum class Rule : std::uint8_t { once, interval, computed };

  static void run(Ready& ready);
  Result<> open() noexcept;
  void insert() noexcept;
  [[nodiscard]] std::int64_t time_after(std::int64_t now_ns);

  Rule rule_ = Rule::once;
  bool started_ = false;
  bool asking_ = false;           ///< Inside next_.
  std::uint32_t heap_index_ = 0;  ///< 0: not in the heap.
  loop::Core* core_;
  WallTimer* next_in_list_ = nullptr;
  std::int64_t deadline_ns_ = 0;
  std::int64_t interval_ns_ = 0;
  std::int64_t offset_ns_ = 0;
  Next next_;
  Function function_;
};

}  // namespace tambour
