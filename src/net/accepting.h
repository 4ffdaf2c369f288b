// What keeps a server accepting whatever becomes of one connection.
#pragma once

#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include <tambour/clock.h>
#include <tambour/event_loop.h>
#include <tambour/result.h>
#include <tambour/task_event.h>
#include <tambour/task_scope.h>
#include <tambour/timer.h>

#include "loop/core.h"

namespace tambour::net {

/// How long a server waits, at first, for what it has run out of.
inline constexpr Duration pause_least = std::chrono::milliseconds(10);

/// Whether there is room for one stream more, which whoever accepts waits for; and when to look
/// again where memory is refused. The timer is made in time: it can still be started then.
class Room final : public TaskEvent {
 public:
  explicit Room(EventLoop& loop) : TaskEvent(loop), again_(loop, [this] { set(); }) {}

  void set_later() {
    reset();
    again_.start(pause_least);
  }

 private:
  Timer again_;
};

/// Calls `function`; what it throws leaves the loop's run().
template <class Function>
void call_and_tell(EventLoop& loop, Function&& function) noexcept {
  try {
    std::forward<Function>(function)();
  } catch (...) {
    loop::core_of(loop).throw_out_of_run(std::current_exception());
  }
}

/// What leaves a task of `scope` leaves the loop's run().
inline void tell_exceptions(TaskScope& scope, EventLoop& loop) {
  scope.set_exception_handler([&loop](std::exception_ptr thrown) {
    loop::core_of(loop).throw_out_of_run(std::move(thrown));
  });
}

/// Why a server accepts no more. Unless it was stopped, nobody who waits for its streams would
/// know.
inline void throw_unless_stopped(const Error& error) {
  if (error != system_error(ECANCELED)) throw std::system_error(error);
}

}  // namespace tambour::net
