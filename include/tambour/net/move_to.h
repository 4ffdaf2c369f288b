// Moves a stream or a socket to another loop.
#pragma once

#include <concepts>
#include <source_location>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/io_handle.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// The access of move_to() to a handle.
struct LoopChange {
  static void leave(IoHandle& handle) noexcept { handle.leave_loop(); }
  static void enter(IoHandle& handle, EventLoop& loop) noexcept { handle.enter_loop(loop); }
};

}  // namespace detail

/// Moves `handle`, a stream or a socket, to the loop `to`, and invokes `then(handle)` on that
/// loop's thread:
///
///   move_to(group[1], std::move(socket), [](UdpSocket arrived) { serve(std::move(arrived)); });
///
/// Call it on the thread of the handle's loop. Everything that belongs to the handle moves with it,
/// such as the PROXY header of a stream. Waits on it fail with ECANCELED. If the loop `to` is
/// destroyed first, the handle is closed and `then` is not invoked. Throws like EventLoop::post();
/// the handle is then closed. Aborts if the handle is default-constructed. To continue with a task,
/// use spawn_on() in <tambour/net/spawn_on.h>. The stall detector names `at`.
template <class Handle, class Then>
  requires std::derived_from<Handle, IoHandle> && std::invocable<Then&, Handle>
void move_to(EventLoop& to, Handle handle, Then then,
             std::source_location at = std::source_location::current()) {
  static_assert(!detail::StartsCoroutine<Then&, Handle>,
                "move_to() discards the result of `then`: a coroutine would never run. Use "
                "spawn_on(), which spawns it as a task.");
  detail::LoopChange::leave(handle);
  to.post(
      [&to, moved = std::move(handle), call = std::move(then)]() mutable {
        detail::LoopChange::enter(moved, to);
        call(std::move(moved));
      },
      at);
}

}  // namespace tambour

#pragma GCC visibility pop
