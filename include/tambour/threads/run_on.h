// Runs a task or a function on another loop, and brings its result back.
//
//   const auto size = co_await run_on(group.by_hash(user), store, user, message);
//
// A task cannot change its loop: its frame refers to objects of the loop that it was spawned on.
// run_on() starts another task on the other loop instead; see docs/decisions/0020-run-on.md.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include <tambour/base/result.h>
#include <tambour/detail/remote_call.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The awaitable of run_on(), which may be moved until it is awaited.
template <class T>
class [[nodiscard("nothing happens until this is awaited")]] RunOn {
 public:
  /// Throws std::bad_alloc.
  RunOn(EventLoop& to, Task<T> task) : to_(to), call_(new Call(std::move(task))) {}
  RunOn(RunOn&& other) noexcept : to_(other.to_), call_(std::exchange(other.call_, nullptr)) {
    detail::check_not_awaited(other.awaiting_, "run_on()");
  }
  RunOn& operator=(RunOn&&) = delete;
  ~RunOn() {
    stop_.reset();
    if (call_ != nullptr) call_->abandon();
  }

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::loop, &to_), at);
    awaiting_ = awaiting;
    call_->start(*context.loop, to_, awaiting, context);
    stop_.emplace(context.stop, Stop{*call_});
  }

  detail::ResultOf<T> await_resume() {
    // Later stop requests must not reach the call.
    stop_.reset();
    return call_->take();
  }

 private:
  struct Call final : detail::RemoteCall {
    explicit Call(Task<T> work) noexcept : task(std::move(work)) {}

    Task<> run() override {
      if constexpr (std::is_void_v<T>) {
        co_await std::move(task);
      } else {
        value.emplace(co_await std::move(task));
      }
    }
    void destroy_task() noexcept override { task = Task<T>(); }

    detail::ResultOf<T> take() {
      if (error() != 0) return std::unexpected(system_error(error()));
      if (thrown() != nullptr) std::rethrow_exception(thrown());
      if constexpr (std::is_void_v<T>) {
        return {};
      } else {
        return *std::move(value);
      }
    }

    Task<T> task;
    std::optional<detail::WhenValue<T>> value;
  };
  struct Stop {
    Call& call;
    void operator()() const noexcept { call.request_stop(); }
  };

  EventLoop& to_;
  Call* call_;  ///< Null: moved from.
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

/// Runs `task`, which has not started and must not be empty, on the loop `to`. The awaiting task
/// resumes on its own loop when that task has ended and is destroyed, with its result or exception.
/// A Result<T> is returned unchanged; any other type, including void, is wrapped in a Result.
///
/// Cancellation: if the awaiting task is asked to stop, `task` is asked to stop on its loop, and
/// the wait ends when it has ended. If it has not started yet, it never starts, and the wait fails
/// with ECANCELED at once. Errors: fails with ECANCELED if the loop `to` is destroyed, or its
/// LoopGroup stops, before the task has ended; with ENOMEM or std::bad_alloc if memory is exhausted
/// on either loop, and with EAGAIN if the queue of `to` is full (EventLoop::post()). Lifetime: `to`
/// must exist when this is awaited. A loop that is not run makes no progress. If the awaiting task
/// is destroyed during the wait, the other one is asked to stop, may still run for a while, and its
/// result is discarded on its thread: objects that it refers to must live that long. Thread: the
/// frame of `task` is created on this thread; the task runs, and its frame is destroyed, on the
/// other one. It must not use objects of this loop. Fork: in a child after fork(2), the wait fails
/// with ECANCELED when the loop is reopened. Memory: allocates the call, and a few frames on the
/// other loop.
template <class T>
  requires(!std::is_reference_v<T>)
RunOn<T> run_on(EventLoop& to, Task<T> task,
                std::source_location at = std::source_location::current()) {
  if (!task) [[unlikely]]
    detail::fail_on_empty_task("run_on()", at);
  return RunOn<T>(to, std::move(task));
}

/// Runs `callable(arguments...)`, which returns a Task or a value, on the loop `to`; otherwise like
/// run_on(to, task). The callable and the arguments are copied or moved, passed as rvalues, and
/// destroyed on the other loop. With GCC 12, a lambda inside a co_await expression must capture
/// numbers and references only: pass arguments instead.
///
///   const auto count = co_await run_on(other, [](Cache& cache) { return cache.size(); },
///                                      std::ref(cache_of_other));
template <class F, class... Args>
  requires std::invocable<std::decay_t<F>, std::decay_t<Args>...>
auto run_on(EventLoop& to, F&& callable, Args&&... arguments) {
  using Returned = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  if constexpr (detail::is_task<Returned>) {
    return run_on(to, detail::call_as_task(std::decay_t<F>(std::forward<F>(callable)),
                                           std::decay_t<Args>(std::forward<Args>(arguments))...));
  } else {
    auto call = [](std::decay_t<F> local, std::decay_t<Args>... argument) -> Task<Returned> {
      co_return std::invoke(std::move(local), std::move(argument)...);
    };
    return run_on(to, call(std::forward<F>(callable), std::forward<Args>(arguments)...));
  }
}

}  // namespace tambour

#pragma GCC visibility pop
