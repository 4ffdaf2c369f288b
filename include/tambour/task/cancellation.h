// Tasks that ignore stop requests, and tasks that have a stop token of their own.
#pragma once

#include <coroutine>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>

#include <tambour/task/awaitable.h>
#include <tambour/task/combinators.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A task that stop requests of the awaiting task do not reach.
template <class T>
class [[nodiscard]] Uncancellable final : public detail::TaskTuple<detail::AllOfTasks, T> {
 public:
  using detail::TaskTuple<detail::AllOfTasks, T>::TaskTuple;

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    return this->begin(
        awaiting, 1, at, [this] { this->start(std::get<0>(this->tasks_).promise()); },
        /*forwards=*/false);
  }
  T await_resume() { return std::get<0>(this->tasks_).promise().take(); }
};

/// Awaits a task or another awaitable to its end, even if the awaiting task is asked to stop: for
/// operations that must be completed, such as the end of a transaction. Set a time limit inside:
///
///   co_await uncancellable(timeout(5s, connection.roll_back()));
///
/// As an argument of timeout() and when_any() it is awaited to its end. Corresponds to Kotlin's
/// NonCancellable and Trio's shield.
template <AwaitableArgument A>
Uncancellable<AwaitResult<A>> uncancellable(A awaitable) {
  return Uncancellable<AwaitResult<A>>(as_task(std::move(awaitable)));
}

/// A task that a second stop token stops too.
template <class T>
class [[nodiscard]] WithStopToken final : public detail::TaskTuple<detail::AllOfTasks, T> {
 public:
  /// What with_stop_token() returns.
  WithStopToken(std::stop_token stop, Task<T> task)
      : detail::TaskTuple<detail::AllOfTasks, T>(std::move(task)), stop_(std::move(stop)) {}

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    other_.emplace(std::move(stop_), this->forward());
    return detail::TaskTuple<detail::AllOfTasks, T>::await_suspend(awaiting, at);
  }
  T await_resume() { return std::get<0>(this->tasks_).promise().take(); }

 private:
  using Forward = detail::TaskGroup::Forward;
  std::stop_token stop_;
  std::optional<std::stop_callback<Forward>> other_;
};

/// Runs a task, or another awaitable, which is asked to stop when `stop` is, or when the awaiting
/// task is. With a handle, it cancels one task of a scope cooperatively:
///
///   std::stop_source stop;
///   auto upload = scope.spawn(with_stop_token(stop.get_token(), send(file)));
///   ...
///   stop.request_stop();                             // The waits of send() fail with ECANCELED.
///   const Result<> sent = co_await upload.join();
///
/// Thread: request the stop on the loop's thread.
template <AwaitableArgument A>
Task<AwaitResult<A>> with_stop_token(std::stop_token stop, A awaitable) {
  static_assert(
      detail::is_cancellable<A>,
      "with_stop_token() cannot cancel this awaitable: its await_suspend() takes a "
      "std::coroutine_handle<>, "
      "which has no stop token. Give it a member set_stop_token(std::stop_token), or make "
      "await_suspend() a template that takes std::coroutine_handle<Promise>, or write it with "
      "from_callback(). To wait for its end whenever that is, pass uncancellable(awaitable). See "
      "docs/awaitables.md.");
  using T = AwaitResult<A>;
  return [](std::stop_token token, Task<T> task) -> Task<T> {
    WithStopToken<T> stopped(std::move(token), std::move(task));
    co_return co_await stopped;
  }(std::move(stop), as_task(std::move(awaitable)));
}

}  // namespace tambour

#pragma GCC visibility pop
