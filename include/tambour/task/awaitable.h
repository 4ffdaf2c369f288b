// What when_all(), when_any() and timeout() accept besides a Task: any awaitable, and any function
// that returns one.
//
// The combinators move an awaitable into a coroutine frame of its own and await it there. The
// objects that the awaitable refers to, such as a stream and its buffer, must exist until it has
// ended. An awaitable of the library may be moved until it is awaited; moving it later aborts with
// a message. An awaitable that cannot be moved at all is passed as a function, which constructs it
// in the frame:
//
//   co_await timeout(1s, [&] { return client.unmovable_wait(); });
//
// GCC 12 destroys the captures of a lambda inside a co_await expression twice. References, pointers
// and numbers are safe; to capture anything else, name the lambda first and std::move() it.
#pragma once

#include <concepts>
#include <coroutine>
#include <expected>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

template <class A>
concept HasMemberCoAwait =
    requires(A&& awaitable) { std::forward<A>(awaitable).operator co_await(); };
template <class A>
concept HasFreeCoAwait = requires(A&& awaitable) { operator co_await(std::forward<A>(awaitable)); };

/// The awaiter of `awaitable`, as a co_await expression finds it.
template <class A>
constexpr decltype(auto) awaiter_of(A&& awaitable) {
  if constexpr (HasMemberCoAwait<A>) {
    return std::forward<A>(awaitable).operator co_await();
  } else if constexpr (HasFreeCoAwait<A>) {
    return operator co_await(std::forward<A>(awaitable));
  } else {
    return std::forward<A>(awaitable);
  }
}

template <class Awaiter>
concept IsAwaiter = requires(Awaiter& awaiter) {
  { awaiter.await_ready() } -> std::convertible_to<bool>;
  awaiter.await_resume();
};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;

}  // namespace detail

/// An object that a task can await as an rvalue: it has a member or free operator co_await, or is
/// itself the awaiter.
template <class A>
concept CanBeAwaited = std::is_object_v<A> && requires(A&& awaitable) {
  { detail::awaiter_of(std::forward<A>(awaitable)) } -> detail::IsAwaiter;
};

/// An object that a task can await, and that can be moved, at least until it is awaited.
template <class A>
concept Awaitable = CanBeAwaited<A> && std::move_constructible<A>;

/// A function without parameters that returns an awaitable, which need not be movable.
template <class F>
concept AwaitableFunction = !CanBeAwaited<F> && std::move_constructible<F> && std::invocable<F&> &&
                            CanBeAwaited<std::invoke_result_t<F&>>;

/// The arguments of when_all(), when_any() and timeout().
template <class A>
concept AwaitableArgument = Awaitable<A> || AwaitableFunction<A>;

namespace detail {

template <class A>
struct ResultOfAwaiting {
  using Type = decltype(awaiter_of(std::declval<A>()).await_resume());
};
template <AwaitableFunction F>
struct ResultOfAwaiting<F> : ResultOfAwaiting<std::invoke_result_t<F&>> {};
template <class T>
struct ResultOfAwaiting<Task<T>> {
  using Type = T;
};

/// A value or an lvalue reference.
template <class T>
using StoredResult = std::conditional_t<std::is_lvalue_reference_v<T>, T,
                                        std::remove_cv_t<std::remove_reference_t<T>>>;

template <class T>
inline constexpr bool is_result = false;

}  // namespace detail
template <class T, std::convertible_to<Error> E>
  requires(std::convertible_to<Error, E>)
inline constexpr bool detail::is_result<Result<T, E>> = true;
template <class T, std::convertible_to<Error> E>
  requires(std::convertible_to<Error, E>)
inline constexpr bool detail::is_result<std::expected<T, E>> = true;

namespace detail {

/// A Result<T> is unchanged, and so is another std::expected whose error may be any Error; any
/// other type T becomes Result<T>.
template <class T>
using ResultOf = std::conditional_t<is_result<T>, T, Result<T>>;

/// An awaitable that gets the token of its task from as_task(), see docs/awaitables.md. It may be
/// moved afterwards, until it is awaited: GCC 12 does so.
template <class A>
concept TakesStopToken =
    requires(A& awaitable, std::stop_token stop) { awaitable.set_stop_token(std::move(stop)); };

/// An awaiter whose only await_suspend() takes a std::coroutine_handle<>, from which it cannot get
/// the stop token of the task. (The address of a template or of overloads cannot be taken.)
template <class Awaiter>
concept SeesNoTask = requires(Awaiter& awaiter, std::coroutine_handle<> awaiting) {
  &Awaiter::await_suspend;
  awaiter.await_suspend(awaiting);
};

template <class A>
struct IsCancellable
    : std::bool_constant<
          TakesStopToken<A> ||
          !SeesNoTask<std::remove_cvref_t<decltype(awaiter_of(std::declval<A>()))>>> {};
template <AwaitableFunction F>
struct IsCancellable<F> : IsCancellable<std::remove_cvref_t<std::invoke_result_t<F&>>> {};

/// For static_assert() in the combinators that cancel their arguments.
template <class A>
inline constexpr bool is_cancellable = IsCancellable<A>::value;

}  // namespace detail

/// The result of awaiting an AwaitableArgument, as combinators return it.
template <AwaitableArgument A>
using AwaitResult = detail::StoredResult<typename detail::ResultOfAwaiting<A>::Type>;

/// A task that awaits `argument`; a Task is returned unchanged. If the awaitable has a member
/// set_stop_token(std::stop_token), that is called first, with the token of this task. The new
/// frame owns `argument`. Throws std::bad_alloc.
template <AwaitableArgument A>
Task<AwaitResult<A>> as_task(A argument) {
  using Returned = Task<AwaitResult<A>>;
  if constexpr (detail::is_task<A>) {
    return argument;
  } else if constexpr (Awaitable<A>) {
    return [](A local) -> Returned {
      if constexpr (detail::TakesStopToken<A>) {
        const TaskContext& context = co_await this_task;
        local.set_stop_token(context.stop);
      }
      co_return co_await std::move(local);
    }(std::move(argument));
  } else if constexpr (detail::TakesStopToken<std::invoke_result_t<A&>>) {
    return [](A function) -> Returned {
      const TaskContext& context = co_await this_task;
      auto&& local = std::invoke(function);
      local.set_stop_token(context.stop);
      co_return co_await std::forward<decltype(local)>(local);
    }(std::move(argument));
  } else {
    return [](A function) -> Returned {
      co_return co_await std::invoke(function);
    }(std::move(argument));
  }
}

}  // namespace tambour

#pragma GCC visibility pop
