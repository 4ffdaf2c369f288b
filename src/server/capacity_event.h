// The event that an accepting task waits for while its server cannot take another connection.
#pragma once

#include <chrono>

#include <tambour/base/clock.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/task/event.h>

namespace tambour::detail::server {

/// The first pause after accept(2) has failed because descriptors or memory ran out.
inline constexpr Duration accept_pause_min = std::chrono::milliseconds(10);

/// Set when capacity for another connection may be available. If memory has run out, set_later()
/// sets it after accept_pause_min. The timer is created in the constructor, so that it can be
/// started even when memory has run out.
class CapacityEvent final : public TaskEvent {
 public:
  explicit CapacityEvent(EventLoop& loop) : TaskEvent(loop), again_(loop, [this] { set(); }) {}

  void set_later() {
    reset();
    set_after(accept_pause_min);
  }
  void set_after(Duration delay) { again_.start(delay); }

 private:
  Timer again_;
};

}  // namespace tambour::detail::server
