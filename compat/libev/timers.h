// The ev_timer watchers of one loop, in a timing wheel, and the ev_periodic watchers, in a heap.
//
// Both need integer keys: the bits of non-negative doubles, read as integers, have the same order
// as the doubles. A time that is not a number never comes, like an infinite one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <ev.h>

#include "array.h"
#include "base/quad_heap.h"
#include "common/timer_table.h"

namespace tambour::libev {

struct Loop;

inline std::int64_t key_of(ev_tstamp at) noexcept {
  if (at > 0.) [[likely]]
    return std::bit_cast<std::int64_t>(at);
  if (!std::isnan(at)) return 0;
  return std::bit_cast<std::int64_t>(std::numeric_limits<ev_tstamp>::infinity());
}
inline ev_tstamp time_of(std::int64_t key) noexcept { return std::bit_cast<ev_tstamp>(key); }

/// `active` of a watcher is its index in the heap.
struct PlaceInHeap {
  template <class Watcher>
  static void set(Watcher& watcher, std::uint32_t index) noexcept {
    watcher.active = static_cast<int>(index);
  }
};

/// `active` of a timer is its position in the table, and `at` the deadline.
struct TimerTraits {
  static void* allocate(std::size_t bytes) noexcept { return reallocate(nullptr, bytes); }
  static void free(void* memory) noexcept { reallocate(memory, 0); }
  static int position(const ev_timer& timer) noexcept { return timer.active; }
  static void set_position(ev_timer& timer, int position) noexcept { timer.active = position; }
  static std::int64_t deadline(const ev_timer& timer) noexcept { return key_of(timer.at); }
  static void prefetch(const ev_timer& timer) noexcept {
    __builtin_prefetch(&timer.active);
    __builtin_prefetch(&timer.at);
  }
};

/// Timers with equal deadlines expire in the order in which they were started.
class Timers {
 public:
  explicit Timers(Loop& loop) noexcept : loop_(loop) {}

  void start(ev_timer& timer) noexcept;
  void stop(ev_timer& timer) noexcept;
  /// The timer must be active.
  void move(ev_timer& timer, ev_tstamp at) noexcept {
    timer.at = at;
    table_.move(timer);
  }

  [[nodiscard]] bool empty() const noexcept { return table_.empty(); }
  /// No timer expires before this time. Possibly none expires at this time.
  [[nodiscard]] ev_tstamp next() noexcept { return time_of(table_.next()); }

  /// Feeds the expired timers, so that the earliest is invoked first.
  void expire() noexcept;
  /// Moves all deadlines by the same duration.
  void shift(ev_tstamp by) noexcept;
  void verify() noexcept;
  /// Calls f(timer) for each timer, in no order.
  template <class F>
  void for_each(F&& f) {
    table_.for_each(f);
  }

 private:
  void reserve_and_add(ev_timer& timer) noexcept;

  Loop& loop_;
  compat::TimerTable<ev_timer, TimerTraits> table_;
};

class Periodics {
 public:
  explicit Periodics(Loop& loop) noexcept : loop_(loop) {}

  void start(ev_periodic& periodic) noexcept;
  void stop(ev_periodic& periodic) noexcept;

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] ev_tstamp next() const noexcept { return time_of(heap_.top_key()); }

  void expire() noexcept;
  /// Call after the wall clock was set.
  void reschedule() noexcept;
  void verify() const noexcept;
  /// Calls f(periodic) for each periodic, in no order.
  template <class F>
  void for_each(F&& f) const {
    for (std::uint32_t i = heap_.first_index(); i < heap_.end_index(); ++i) f(heap_.item(i));
  }

 private:
  /// The first time after now at which a periodic with an interval expires.
  [[nodiscard]] ev_tstamp time_after_now(const ev_periodic& periodic) const noexcept;

  Loop& loop_;
  detail::base::QuadHeap<ev_periodic, PlaceInHeap> heap_;
  Array<ev_periodic*> scratch_;
};

}  // namespace tambour::libev
