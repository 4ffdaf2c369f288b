// Hands a stream over to a task on another loop.
#pragma once

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/net/move_to.h>
#include <tambour/net/stream.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>
#include <tambour/threads/spawn_on.h>  // IWYU pragma: export

#pragma GCC visibility push(default)

namespace tambour {

/// Moves `stream` to the loop `to` and spawns `handler(stream)`, which returns a Task<>, on that
/// loop; see spawn(). A task cannot change its loop: it hands its stream to a new task instead:
///
///   spawn_on(group.least_loaded(), std::move(peer), serve_large_file);
///
/// Call it on the thread of the stream's loop. Data that arrives during the move stays in the
/// kernel. Data that was read but not used yet must be passed with the handler. Throws
/// like EventLoop::post(); the stream is then closed. The stall detector names `at`.
template <class S, class Handler>
  requires std::derived_from<S, Stream> && std::is_invocable_r_v<Task<>, Handler&, S>
void spawn_on(EventLoop& to, S stream, Handler handler,
              std::source_location at = std::source_location::current()) {
  move_to(
      to, std::move(stream),
      [handler = std::move(handler), at](S arrived) mutable {
        EventLoop& here = arrived.loop();
        // The coroutine frame owns the handler until its task ends.
        spawn(
            here,
            [](Handler kept, S local) -> Task<> { co_await kept(std::move(local)); }(
                                          std::move(handler), std::move(arrived)),
            at);
      },
      at);
}

}  // namespace tambour

#pragma GCC visibility pop
