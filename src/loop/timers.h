// The timers of one loop: a heap that is touched as seldom as can be.
//
// What stands in the heap is a lower bound. A timer whose deadline moved later, or that was
// stopped, keeps its place; when that comes up, the timer is put where it belongs by then, or taken
// out. So the heap never misses a deadline, and pushing one back costs a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <tambour/timer.h>

#include "base/clock.h"
#include "base/quad_heap.h"
#include "op/ready_queue.h"

namespace tambour::loop {

class Timers {
 public:
  /// One more timer exists. Throws std::bad_alloc: from then on, starting it cannot fail.
  void attach() {
    heap_.reserve(attached_ + 1);
    ++attached_;
  }

  /// One fewer.
  void detach(Timer& timer) noexcept {
    if (timer.heap_index_ != 0) heap_.remove(timer.heap_index_);
    --attached_;
  }

  /// `timer` has a new address.
  void moved(Timer& timer) noexcept {
    if (timer.heap_index_ != 0) heap_.replace(timer.heap_index_, timer);
  }

  /// Sets a timer's deadline. Later than before is the common case, and does not even look at where
  /// the timer stands in the heap, which is never behind its deadline.
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

  /// Whether at least so many timers are started. They are not counted as they start and stop: one
  /// counter that all of them write to costs more than everything else that stopping a timer does.
  [[nodiscard]] bool are_started(std::int64_t at_least) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// How many of them are started; takes a step for each.
  [[nodiscard]] std::int64_t count_started() const noexcept;

  /// No timer expires before this; a timer need not expire then.
  [[nodiscard]] std::int64_t next_ns() const noexcept {
    return heap_.empty() ? base::end_of_time_ns : heap_.top_key();
  }

  /// Appends the timers whose time has come, in the order of their deadlines.
  void expire(std::int64_t now_ns, ReadyQueue& ready) noexcept;

  /// Moves all deadlines by the same time, which leaves their order.
  void shift(std::int64_t by_ns) noexcept;

  /// All timers are their owners' again, stopped.
  void abandon() noexcept;

 private:
  struct Place {
    static void set(Timer& timer, std::uint32_t index) noexcept { timer.heap_index_ = index; }
  };

  [[nodiscard]] bool any_due(std::int64_t now_ns) const noexcept {
    // The end of time is never reached, not even by a clock that says so.
    return next_ns() <= now_ns && next_ns() != base::end_of_time_ns;
  }
  void expire_top(std::int64_t now_ns, ReadyQueue& ready) noexcept;
  void expire_all(std::int64_t now_ns, ReadyQueue& ready);
  static void make_ready(Timer& timer, std::int64_t now_ns, ReadyQueue& ready) noexcept;

  base::QuadHeap<Timer, Place> heap_;
  std::size_t attached_ = 0;
};

}  // namespace tambour::loop
