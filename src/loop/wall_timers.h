// The wall-clock timers of one loop: a heap, and one timerfd(2) that is also told when the clock is
// set.
//
// All started timers are in the heap. One that is queued stands at its end until it has run. The
// timerfd is set to a time that is at most the first deadline: a later one costs no system call
// until it comes up.
#pragma once

#include <cstdint>

#include <tambour/result.h>
#include <tambour/unique_fd.h>
#include <tambour/wall_timer.h>

#include "base/clock.h"
#include "base/quad_heap.h"
#include "loop/service_watch.h"

namespace tambour::loop {

class Core;

class WallTimers {
 public:
  explicit WallTimers(Core& core) noexcept;

  /// Makes sure that one more can be inserted. EMFILE, ENFILE, ENOMEM, ERANGE.
  Result<> open() noexcept;
  void insert(WallTimer& timer) noexcept;
  void remove(WallTimer& timer) noexcept;
  void moved(WallTimer& timer) noexcept { heap_.replace(timer.heap_index_, timer); }

  /// The timer's deadline is another one.
  void move(WallTimer& timer) noexcept;
  /// Queues a timer, which then finds that it is not due, and asks for its next time.
  void ask(WallTimer& timer) noexcept;

  /// Under virtual time: when something has to be done, by the loop's clock. Else never: the
  /// timerfd tells.
  std::int64_t before_wait() noexcept;
  void expire() noexcept;

  Result<> reopen() noexcept;
  void abandon() noexcept;

  /// The timerfd has something to tell; for tests, that the clock was set.
  void look(bool was_set) noexcept;

 private:
  struct Place {
    static void set(WallTimer& timer, std::uint32_t index) noexcept { timer.heap_index_ = index; }
  };
  using Queue = void (Core::*)(Ready&) noexcept;

  Result<> open_timerfd() noexcept;
  void arm() noexcept;
  int set_timerfd(std::int64_t deadline_ns) noexcept;
  void on_readable() noexcept;
  void expire_into(Queue queue) noexcept;
  void reschedule(Queue queue) noexcept;
  void put(WallTimer& timer, Queue queue, std::int64_t now_ns) noexcept;

  Core& core_;
  base::QuadHeap<WallTimer, Place> heap_;
  UniqueFd timerfd_;
  std::int64_t armed_ns_ = base::end_of_time_ns;
  bool was_set_ = false;  ///< The clock, as the timerfd said out of turn.
  std::uint64_t changes_seen_ = 0;
  ServiceWatch watch_;
};

}  // namespace tambour::loop
