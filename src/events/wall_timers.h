// The wall-clock timers of one loop: a heap and one timerfd(2), which also reports that the clock
// was set.
//
// All started timers are in the heap. A queued timer has the key end_of_time_ns until it has run.
// The timerfd is armed for a time not later than the first deadline, so postponing a timer costs no
// system call until that time.
#pragma once

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/events/wall_timer.h>

#include "base/clock.h"
#include "base/quad_heap.h"
#include "loop/service.h"
#include "loop/service_watch.h"

namespace tambour::detail::events {

class WallTimers final : public loop::Service {
 public:
  explicit WallTimers(loop::Core& core) noexcept;

  /// Makes sure that one more timer can be inserted. Fails with EMFILE, ENFILE, ENOMEM or ERANGE.
  Result<> open() noexcept;
  void insert(WallTimer& timer) noexcept;
  void remove(WallTimer& timer) noexcept;
  void moved(WallTimer& timer) noexcept { heap_.replace(timer.heap_index_, timer); }

  /// Call when the timer's deadline has changed.
  void move(WallTimer& timer) noexcept;
  /// Queues a timer that is not due, so that it computes its next time.
  void queue_recompute(WallTimer& timer) noexcept;

  /// Under virtual time: when the next timer is due, by the loop's clock. Otherwise end_of_time_ns,
  /// because the timerfd reports it.
  std::int64_t before_wait() noexcept override;
  void expire(std::int64_t now_ns) noexcept override;

  void disown_if_lost(bool has_all) noexcept override;
  Result<> reopen() noexcept override;
  void close() noexcept override;

  /// Handles a timerfd event; `was_set`: the clock was set. Called directly by tests.
  void handle_event(bool was_set) noexcept;

 private:
  struct Place {
    static void set(WallTimer& timer, std::uint32_t index) noexcept { timer.heap_index_ = index; }
  };
  using Queue = void (loop::Core::*)(detail::ReadyNode&) noexcept;

  Result<> open_timerfd() noexcept;
  void arm() noexcept;
  int set_timerfd(std::int64_t deadline_ns) noexcept;
  void on_readable() noexcept;
  void expire_into(Queue queue) noexcept;
  void reschedule(Queue queue) noexcept;
  void put(WallTimer& timer, Queue queue, std::int64_t now_ns) noexcept;

  loop::Core& core_;
  base::QuadHeap<WallTimer, Place> heap_;
  UniqueFd timerfd_;
  bool was_disowned_ = false;
  std::int64_t armed_ns_ = base::end_of_time_ns;
  bool was_set_ = false;  ///< The clock was set, as timerfd_settime(2) reported.
  std::uint64_t changes_seen_ = 0;
  loop::ServiceWatch watch_;
};

}  // namespace tambour::detail::events
