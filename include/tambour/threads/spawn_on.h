// Spawns a task on another loop, from any thread.
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Spawns `task`, which has not started and must not be empty, on the loop `to`, and returns at
/// once. The task starts in a later iteration of that loop, which then owns it: see spawn(). Its
/// result is discarded, and an exception propagates out of that loop's run(). To get the result,
/// co_await run_on() in a task, or call block_on(run_on(...)) on a thread without a loop.
///
/// Thread: callable from any thread, which must ensure that the loop exists. If the loop is
/// destroyed first, the task is destroyed without having run. The frame is created on this thread
/// and destroyed on the other one. Throws like EventLoop::post(); the task is then destroyed.
template <class T>
void spawn_on(EventLoop& to, Task<T> task,
              std::source_location at = std::source_location::current()) {
  if (!task) [[unlikely]]
    detail::fail_on_empty_task("spawn_on()", at);
  to.post([&to, at, task = std::move(task)]() mutable { spawn(to, std::move(task), at); }, at);
}

/// Spawns the task that `callable(arguments...)` returns. It is called on the thread of `to`. The
/// callable and the arguments are copied or moved into a coroutine frame, passed as rvalues, and
/// destroyed on that thread; see TaskScope::spawn().
///
///   spawn_on(group.next(), serve_metrics, port);
template <class F>
  requires TaskFunction<std::decay_t<F>>
void spawn_on(EventLoop& to, F&& callable,
              std::source_location at = std::source_location::current()) {
  spawn_on(to, detail::call_as_task(std::decay_t<F>(std::forward<F>(callable))), at);
}
template <class F, class A>
  requires TaskFunction<std::decay_t<F>, std::decay_t<A>>
void spawn_on(EventLoop& to, F&& callable, A&& argument,
              std::source_location at = std::source_location::current()) {
  spawn_on(to,
           detail::call_as_task(std::decay_t<F>(std::forward<F>(callable)),
                                std::decay_t<A>(std::forward<A>(argument))),
           at);
}
template <class F, class A, class... Args>
  requires(sizeof...(Args) > 0) &&
          TaskFunction<std::decay_t<F>, std::decay_t<A>, std::decay_t<Args>...>
void spawn_on(EventLoop& to, F&& callable, A&& first, Args&&... arguments) {
  spawn_on(to, detail::call_as_task(std::decay_t<F>(std::forward<F>(callable)),
                                    std::decay_t<A>(std::forward<A>(first)),
                                    std::decay_t<Args>(std::forward<Args>(arguments))...));
}

}  // namespace tambour

#pragma GCC visibility pop
