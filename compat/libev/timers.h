// The ev_timer and ev_periodic watchers of one loop, in heaps.
//
// A heap needs integer keys: the bits of non-negative doubles, read as integers, have the same
// order as the doubles.
#pragma once

#include <bit>
#include <cstdint>

#include <ev.h>

#include "array.h"
#include "base/quad_heap.h"

namespace tambour::libev {

struct Loop;

inline std::int64_t key_of(ev_tstamp at) noexcept {
  return at > 0. ? std::bit_cast<std::int64_t>(at) : 0;
}
inline ev_tstamp time_of(std::int64_t key) noexcept { return std::bit_cast<ev_tstamp>(key); }

/// `active` of a watcher is its index in the heap.
struct PlaceInHeap {
  template <class Watcher>
  static void set(Watcher& watcher, std::uint32_t index) noexcept {
    watcher.active = static_cast<int>(index);
  }
};

/// The key in the heap is a lower bound: a timer that ev_timer_again() has moved to a later time
/// keeps its position until the key expires. `at` is always the actual deadline.
class Timers {
 public:
  explicit Timers(Loop& loop) noexcept : loop_(loop) {}

  void start(ev_timer& timer) noexcept;
  void stop(ev_timer& timer) noexcept;
  /// The timer must be active.
  void move(ev_timer& timer, ev_tstamp at) noexcept {
    const ev_tstamp before = timer.at;
    timer.at = at;
    if (at < before) move_forward(timer);
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  /// No timer expires before this time. Possibly none expires at this time.
  [[nodiscard]] ev_tstamp next() const noexcept { return time_of(heap_.top_key()); }

  /// Returns whether a timer has expired. Updates the keys of timers whose key but not deadline has
  /// passed.
  [[nodiscard]] bool any_due() noexcept;
  /// Feeds the expired timers, so that the earliest is invoked first.
  void expire() noexcept;
  /// Moves all deadlines by the same duration.
  void shift(ev_tstamp by) noexcept;
  void verify() const noexcept;

 private:
  void move_forward(ev_timer& timer) noexcept;

  Loop& loop_;
  base::QuadHeap<ev_timer, PlaceInHeap> heap_;
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

 private:
  void put_after_now(ev_periodic& periodic) const noexcept;

  Loop& loop_;
  base::QuadHeap<ev_periodic, PlaceInHeap> heap_;
  Array<ev_periodic*> scratch_;
};

}  // namespace tambour::libev
