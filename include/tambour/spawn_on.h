// Moving a stream to another loop, and going on there.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <tambour/event_loop.h>
#include <tambour/stream.h>
#include <tambour/task.h>
#include <tambour/task_scope.h>

namespace tambour {

/// Moves `stream` to loop `to`, and runs `handler(stream)`, which returns a Task<>, as a task of
/// that loop: see spawn(). A task itself stays on its loop; it is its stream that goes, and a task
/// there that takes over:
///
///   spawn_on(group.least_loaded(), std::move(peer), serve_large_file);
///
/// On the thread of the stream's loop. What arrives meanwhile waits in the kernel; what was read
/// and not used yet goes with the handler. Throws std::bad_alloc.
template <class S, class Handler>
  requires std::derived_from<S, Stream> && std::is_invocable_r_v<Task<>, Handler&, S>
void spawn_on(EventLoop& to, S stream, Handler handler) {
  stream.move_to(to, [handler = std::move(handler)](Socket socket) mutable {
    EventLoop& here = socket.loop();
    // The frame keeps the handler for as long as its task is there.
    spawn(here, [](Handler kept, S arrived) -> Task<> {
      co_await kept(std::move(arrived));
    }(std::move(handler), S(std::move(socket))));
  });
}

}  // namespace tambour
