// What keeps a server accepting whatever becomes of one connection.
#pragma once

#include <cerrno>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <tambour/clock.h>
#include <tambour/event_loop.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>
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

/// Accepts from `server` and gives each to `take`, until it is stopped. Waits while it `is_full`,
/// which `room` tells the end of. Where several listeners share what room there is, another one may
/// have taken the last place since it was looked for: what has been accepted waits then, unless
/// the server `has_stopped`, which leaves nobody out.
template <class Server, class IsFull, class HasStopped, class Take>
Task<> accept_all(Server& server, Room& room, IsFull is_full, HasStopped has_stopped, Take take) {
  for (;;) {
    for (room.reset(); is_full(); room.reset()) {
      if (!co_await room.wait()) co_return;
    }
    std::optional<Result<Socket>> accepted;
    try {
      accepted = co_await server.accept_socket();
    } catch (const std::bad_alloc&) {
      accepted.reset();  // There is no memory to wait with.
    }
    if (!accepted) {
      room.set_later();
      if (!co_await room.wait()) co_return;
      continue;
    }
    if (!*accepted) {
      throw_unless_stopped(accepted->error());
      co_return;
    }
    for (room.reset(); !has_stopped() && is_full(); room.reset()) {
      if (!co_await room.wait()) break;
    }
    take(std::move(**accepted));
  }
}

}  // namespace tambour::net
