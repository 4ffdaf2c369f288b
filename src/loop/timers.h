// The timers of one loop: a heap with lazy updates.
//
// A key in the heap is a lower bound of the timer's deadline. A timer that is restarted with a
// later deadline, or stopped, keeps its heap entry; when the entry reaches the top, the timer is
// moved to its current deadline or removed. The heap never misses a deadline, and postponing a
// timer costs one store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <tambour/timer.h>

#include "base/clock.h"
#include "base/quad_heap.h"
#include "base/ready_queue.h"

namespace tambour::loop {

using base::ReadyQueue;

class Timers {
 public:
  /// Call when a timer is constructed. Reserves heap space, so that starting it cannot fail. Throws
  /// std::bad_alloc.
  void attach() {
    heap_.reserve(attached_ + 1);
    ++attached_;
  }

  /// Call when a timer is destroyed.
  void detach(Timer& timer) noexcept {
    if (timer.heap_index_ != 0) heap_.remove(timer.heap_index_);
    --attached_;
  }

  /// Call when a timer was moved to a new address.
  void moved(Timer& timer) noexcept {
    if (timer.heap_index_ != 0) heap_.replace(timer.heap_index_, timer);
  }

  /// Sets a timer's deadline. Fast path: a later deadline does not touch the heap, whose key is a
  /// lower bound.
  void arm(Timer& timer, std::int64_t deadline_ns) noexcept {
    const std::int64_t before_ns = std::exchange(timer.deadline_ns_, deadline_ns);
    if (timer.heap_index_ == 0) {
      timer.queued_ns_ = deadline_ns;
      heap_.push(timer, deadline_ns);
    } else if (deadline_ns < before_ns && deadline_ns < timer.queued_ns_) {
      timer.queued_ns_ = deadline_ns;
      heap_.lower_key(timer.heap_index_, deadline_ns);
    }
  }

  /// Returns true if at least this many timers are started. They are not counted on start and stop:
  /// updating one shared counter costs more than the rest of stopping a timer.
  [[nodiscard]] bool are_started(std::int64_t at_least) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// The number of started timers. O(n).
  [[nodiscard]] std::int64_t count_started() const noexcept;

  /// A lower bound of the next expiry; a timer need not be due then.
  [[nodiscard]] std::int64_t next_ns() const noexcept {
    return heap_.empty() ? base::end_of_time_ns : heap_.top_key();
  }

  /// Appends the timers that are due, in the order of their deadlines.
  void expire(std::int64_t now_ns, ReadyQueue& ready) noexcept;

  /// Moves all deadlines by the same amount, which keeps their order.
  void shift(std::int64_t by_ns) noexcept;

  /// Stops and unlinks all timers.
  void abandon() noexcept;

 private:
  struct Place {
    static void set(Timer& timer, std::uint32_t index) noexcept { timer.heap_index_ = index; }
  };

  [[nodiscard]] bool any_due(std::int64_t now_ns) const noexcept {
    // end_of_time_ns never expires, even if the clock returns it.
    return next_ns() <= now_ns && next_ns() != base::end_of_time_ns;
  }
  void expire_top(std::int64_t now_ns, ReadyQueue& ready) noexcept;
  void expire_all(std::int64_t now_ns, ReadyQueue& ready);
  static void make_ready(Timer& timer, std::int64_t now_ns, ReadyQueue& ready) noexcept;

  base::QuadHeap<Timer, Place> heap_;
  std::size_t attached_ = 0;
};

}  // namespace tambour::loop
