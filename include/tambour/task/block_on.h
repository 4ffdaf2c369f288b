// Runs a task from code that is not a task: main(), a test, a thread of another library.
#pragma once

#include <source_location>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// Runs `loop` until `task`, which has not started, has ended. If the loop throws, `destroy` is
/// called with `owner` and destroys the task, which uses objects of this call, before it returns.
void run_until_ended(EventLoop& loop, TaskPromiseBase& task, const std::source_location& at,
                     void* owner, void (*destroy)(void* owner) noexcept);
/// Aborts with a message if the calling thread runs a loop or a task.
void check_may_block(const std::source_location& at) noexcept;

}  // namespace detail

/// Runs `loop` until a task or another awaitable has ended, and returns its result or throws its
/// exception. Tasks of the loop that have not ended then stay suspended until the loop runs again.
/// `stop()` has no effect meanwhile. If a callback or another task of the loop throws, that
/// exception is thrown, and the task is destroyed. Returns only when the task has ended, even if
/// nothing on the loop can resume it, because another thread may.
/// Thread: the loop's thread. If it already runs a loop or a task, block_on() aborts with a
/// message. Throws std::bad_alloc.
template <AwaitableArgument A>
AwaitResult<A> block_on(EventLoop& loop, A awaitable,
                        std::source_location at = std::source_location::current()) {
  auto task = as_task(std::move(awaitable));
  if (!task) [[unlikely]]
    detail::fail_on_empty_task("block_on()", at);
  const auto destroy = [](void* owner) noexcept {
    auto& owned = *static_cast<decltype(task)*>(owner);
    owned = decltype(task)();
  };
  detail::run_until_ended(loop, task.promise(), at, &task, destroy);
  return task.promise().take();
}

/// The same on a loop that is created for this call. Tasks that were spawned on it and have not
/// ended are destroyed with it. Throws std::system_error like the constructor of EventLoop.
///
///   int main() { return block_on(run()); }
template <AwaitableArgument A>
AwaitResult<A> block_on(A awaitable, const LoopOptions& options = {},
                        std::source_location at = std::source_location::current()) {
  detail::check_may_block(at);
  EventLoop loop(options, at);
  return block_on(loop, std::move(awaitable), at);
}

}  // namespace tambour

#pragma GCC visibility pop
