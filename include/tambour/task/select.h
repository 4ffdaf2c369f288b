// Waits for the first of several sources, such as channels, signals, intervals and sockets, without
// losing items of the others.
#pragma once

#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/combinators.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

template <class A>
    struct IsCancelSafe : std::bool_constant < requires {
  requires A::is_cancel_safe;
}>{};
template <AwaitableFunction F>
struct IsCancelSafe<F> : IsCancelSafe<std::remove_cvref_t<std::invoke_result_t<F&>>> {};

/// Returns a number below `branches` that differs from call to call.
std::size_t first_branch(EventLoop& loop, std::size_t branches) noexcept;

}  // namespace detail

/// An awaitable that loses nothing if it is stopped or destroyed before it has succeeded: no item,
/// no byte and no connection. A type declares it by a static member `is_cancel_safe` that is true;
/// docs/channels.md lists those of the library. A function is cancel safe if the awaitable that it
/// returns is.
template <class A>
concept CancelSafe = AwaitableArgument<A> && detail::IsCancelSafe<A>::value;

/// The awaitable of cancel_safe().
template <class T>
class [[nodiscard]] CancelSafeTask {
 public:
  static constexpr bool is_cancel_safe = true;

  /// For functions of the library whose tasks lose nothing when they are cancelled.
  explicit CancelSafeTask(Task<T> task) noexcept : task_(std::move(task)) {}
  auto operator co_await() && noexcept { return std::move(task_).operator co_await(); }

 private:
  Task<T> task_;
};

/// States that `task` loses nothing if it is stopped at any of its waits, which the compiler cannot
/// see: for example because its only wait is cancel safe, or because it keeps what it has received
/// in objects that outlive it.
template <class T>
CancelSafeTask<T> cancel_safe(Task<T> task) noexcept {
  return CancelSafeTask<T>(std::move(task));
}

/// The awaitable of select().
template <class... Ts>
class [[nodiscard]] Select final : public WhenAny<Ts...> {
 public:
  using WhenAny<Ts...>::WhenAny;

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    constexpr std::size_t count = sizeof...(Ts);
    const std::size_t first = detail::first_branch(*awaiting.promise().context().loop, count);
    return this->begin(awaiting, count, at, [this, first] {
      const auto branches = std::apply(
          [](auto&... task) {
            return std::array<detail::TaskPromiseBase*, sizeof...(Ts)>{&task.promise()...};
          },
          this->tasks_);
      for (std::size_t i = 0; i < branches.size(); ++i)
        this->start(*branches[(first + i) % branches.size()]);
    });
  }
};

/// Waits until the first of several cancel-safe awaitables has ended, stops the others, and returns
/// the result of the first; the index of the variant identifies it. The items of the other sources
/// stay there, and can be awaited again:
///
///   for (;;) {
///     const auto first = co_await select(jobs.receive(), signals.next(), every_minute.tick());
///     if (first.index() == 0) ...
///   }
/// Differs from when_any() in two points. All awaitables must be CancelSafe, which is checked at
/// compile time: how much a stopped write has written, for example, would be lost. And if several
/// could proceed at once, the one that is tried first changes from call to call, so that a source
/// which is always ready does not starve the others. Cancellation, exceptions and memory: as
/// when_any().
template <AwaitableArgument... As>
  requires(sizeof...(As) > 0)
Select<AwaitResult<As>...> select(As... awaitables) {
  static_assert((CancelSafe<As> && ...),
                "an argument of select() could lose data when another one wins: use when_any(), or "
                "pass cancel_safe(task) if the task loses nothing; see docs/channels.md");
  return Select<AwaitResult<As>...>(as_task(std::move(awaitables))...);
}

}  // namespace tambour

#pragma GCC visibility pop
