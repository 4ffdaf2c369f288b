// The ev_timer and ev_periodic watchers of one loop, in heaps.
//
// A heap wants integers for keys: the bits of a double that is not negative, taken as an integer,
// are in the order of the doubles.
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

/// What stands in the heap is a lower bound: a timer whose deadline ev_timer_again() moved later
/// keeps its place until that comes up. `at` is always the real deadline.
class Timers {
 public:
  explicit Timers(Loop& loop) noexcept : loop_(loop) {}

  void start(ev_timer& timer) noexcept;
  void stop(ev_timer& timer) noexcept;
  /// Of a timer that is started.
  void move(ev_timer& timer, ev_tstamp at) noexcept {
    const ev_tstamp before = timer.at;
    timer.at = at;
    if (at < before) move_forward(timer);
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  /// No timer expires before this; a timer need not expire then.
  [[nodiscard]] ev_tstamp next() const noexcept { return time_of(heap_.top_key()); }

  /// Whether the time of a timer has come. Puts those right that only seemed to be due.
  [[nodiscard]] bool any_due() noexcept;
  /// Makes those due whose time has come, the earliest to be called first.
  void expire() noexcept;
  /// Moves all deadlines by the same time.
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
  /// The wall clock was set.
  void reschedule() noexcept;
  void verify() const noexcept;

 private:
  void put_after_now(ev_periodic& periodic) const noexcept;

  Loop& loop_;
  base::QuadHeap<ev_periodic, PlaceInHeap> heap_;
  Array<ev_periodic*> scratch_;
};

}  // namespace tambour::libev
