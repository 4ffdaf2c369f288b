// The timers of a drop-in's loop: a timing wheel whose memory is beside the timers.
//
// A timer is a structure in the program's memory whose layout has no room for the links of a list,
// but an integer that the library may use: the position of the timer in this table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/paged_wheel.h"
#include "common/timer_pages.h"

namespace tambour::compat {

/// Timers in the order of their deadlines, then in the order in which they were armed. Deadlines
/// are integers of any unit. Owns the memory of the wheel, not the timers.
///
///   struct Traits {
///     static void* allocate(std::size_t bytes) noexcept;  null if there is no memory
///     static void free(void* memory) noexcept;
///     static int position(const Timer& timer) noexcept;
///     static void set_position(Timer& timer, int position) noexcept;
///     static std::int64_t deadline(const Timer& timer) noexcept;  not negative
///     static void prefetch(const Timer& timer) noexcept;  what these functions access
///   };
///
/// A timer takes 8 bytes, and with the rest of its page 11 to 64.
template <class Timer, class Traits>
class TimerTable {
 public:
  TimerTable() = default;
  TimerTable(const TimerTable&) = delete;
  TimerTable& operator=(const TimerTable&) = delete;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Reserves space for one more timer. Returns false if there is no memory.
  [[nodiscard]] bool reserve() noexcept { return has_space() || pages_.grow(); }
  [[nodiscard]] bool has_space() const noexcept { return size_ < pages_.capacity(); }

  /// Adds a timer with its deadline, and sets its position, which is positive. The space must have
  /// been reserved.
  void add(Timer& timer) noexcept {
    ++size_;
    wheel_.arm(timer, Traits::deadline(timer));
  }

  /// Call after the deadline of a timer of the table was changed. Puts it behind those with the
  /// same deadline.
  void move(Timer& timer) noexcept {
    wheel_.remove(timer);
    wheel_.arm(timer, Traits::deadline(timer));
  }

  /// Removes a timer, and sets its position to 0. Leaves space for one timer.
  void remove(Timer& timer) noexcept {
    wheel_.remove(timer);
    Traits::set_position(timer, 0);
    if (--size_ == 0) pages_.release_all();
  }

  /// The earliest deadline, or a lower bound: see PagedWheel::next(). The table must not be empty.
  [[nodiscard]] std::int64_t next() noexcept { return wheel_.next(); }

  /// Calls f(timer) for each timer whose deadline is at most `now`, in order. `f` must either
  /// remove() the timer, or move() it to a deadline after `now`, and must not change others.
  template <class F>
  void expire(std::int64_t now, F&& f) noexcept {
    wheel_.expire(now, f);
  }

  /// Calls f(timer) for each timer, in no order. `f` may remove timers.
  template <class F>
  void for_each(F&& f) {
    pages_.for_each(f);
  }

  /// Call after the same amount was added to the deadlines of all timers.
  void move_all() noexcept { wheel_.rearm_all(); }

  /// Returns whether the position of a timer refers to that timer, and its deadline is the one that
  /// it had in add() or move(), or one for which the timer would be in the same place.
  [[nodiscard]] bool contains(const Timer& timer) noexcept { return wheel_.contains(timer); }

 private:
  std::size_t size_ = 0;
  TimerPages<Timer, Traits> pages_;
  PagedWheel<Timer, Traits> wheel_{pages_};
};

}  // namespace tambour::compat
