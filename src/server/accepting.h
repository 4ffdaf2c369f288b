// Accepting, shared by all stream servers: backpressure, and isolation of the errors of one
// connection.
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

/// The first pause after accept(2) has failed because descriptors or memory ran out.
inline constexpr Duration pause_least = std::chrono::milliseconds(10);

/// An event that is set when the server can take one more stream; the accepting task waits for it.
/// If memory runs out, set_later() sets it after pause_least. The timer is created in the
/// constructor, so that it can be started even when memory has run out.
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

/// Calls `function`. If it throws, EventLoop::run() throws the exception.
template <class Function>
void call_and_report(EventLoop& loop, Function&& function) noexcept {
  try {
    std::forward<Function>(function)();
  } catch (...) {
    loop::core_of(loop).throw_out_of_run(std::current_exception());
  }
}

/// Makes EventLoop::run() throw what a task of `scope` throws.
inline void report_exceptions(TaskScope& scope, EventLoop& loop) {
  scope.set_exception_handler([&loop](std::exception_ptr thrown) {
    loop::core_of(loop).throw_out_of_run(std::move(thrown));
  });
}

/// Throws `error`, which ended accepting, unless the server was stopped (ECANCELED). No task awaits
/// the accepting task, so the error would be lost otherwise.
inline void throw_unless_stopped(const Error& error) {
  if (error != system_error(ECANCELED)) throw std::system_error(error);
}

/// Accepts sockets from `server` and passes each to `take` until the server is stopped. While
/// `is_full` returns true, it waits for `room` to be set. If several listeners share a limit,
/// another one may have reached the limit since is_full() was checked; then the accepted socket
/// waits, unless `has_stopped` returns true: a socket that was accepted before the stop is still
/// served.
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
      accepted.reset();  // There is no memory for the wait itself.
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
