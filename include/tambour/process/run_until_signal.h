// Runs a server until SIGINT or SIGTERM, or until it ends by itself, and shuts it down gracefully.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// An object that run_until_signal() can shut down: a server, a group of servers, a TaskScope, or
/// an object of a class of the program. A std::optional of one is accepted, too.
template <class S>
concept CanShutDown = requires(S& service, Duration grace) {
  { service.shut_down(grace) } -> std::same_as<Task<>>;
};

/// An object that can shut down, and that can also end by itself, such as a TaskScope: `join()`
/// returns an awaitable that completes when it has ended. Its exception, or the error of a
/// Result<>, is the reason.
template <class S>
concept CanEndByItself = CanShutDown<S> && requires(S& service) {
  requires AwaitableArgument<decltype(service.join())>;
  requires std::is_void_v<AwaitResult<decltype(service.join())>> ||
               std::same_as<AwaitResult<decltype(service.join())>, Result<>>;
};

namespace detail {

template <class S>
inline constexpr bool can_shut_down = CanShutDown<S>;
template <class S>
inline constexpr bool can_shut_down<std::optional<S>> = CanShutDown<S>;

/// A service of run_until_signal().
struct RunningService {
  Callback<Task<>(Duration)> shut_down;
  Callback<Task<Result<>>()> join{};  ///< Empty: it does not end by itself.
  bool is_present = true;             ///< False: an empty std::optional.
};

template <class S>
Task<Result<>> join_service(S& service) {
  if constexpr (std::is_void_v<AwaitResult<decltype(service.join())>>) {
    co_await service.join();
    co_return {};
  } else {
    co_return co_await service.join();
  }
}

template <class S>
RunningService running_service(S& service) {
  RunningService running{[&service](Duration grace) { return service.shut_down(grace); }};
  if constexpr (CanEndByItself<S>) running.join = [&service] { return join_service(service); };
  return running;
}
template <class S>
RunningService running_service(std::optional<S>& service) {
  if (service) return running_service(*service);
  return {.shut_down = [](Duration) { return Task<>(); }, .is_present = false};
}

[[nodiscard]] Result<int> run_until_signal(EventLoop& loop, Duration grace,
                                           std::span<const RunningService> services);

}  // namespace detail

/// Runs `loop` until the process gets SIGINT or SIGTERM, or the services end by themselves, and
/// then shuts all services down at the same time: it awaits `shut_down(grace)` of each, which stops
/// accepting, waits up to `grace` for requests and tasks in progress, asks the remaining ones to
/// stop, and waits for them.
///
///   auto server = or_throw(http::Server::listen(loop, at, handler));
///   or_throw(run_until_signal(loop, 10s, server));
///
/// Services that end: `join()` of each service that has one (see CanEndByItself) is awaited
/// meanwhile. If it throws or fails, as that of a TaskScope does after an exception of one of its
/// tasks, all services are shut down, and the exception or error is that of run_until_signal(). If
/// every service has a join() and all of these have completed, nothing is left to run for. A server
/// never ends by itself, so a program with a server runs until a signal or a failure. A TaskScope
/// without a task has ended: if other objects spawn its tasks later, pass these, too.
///
/// Signals: a second signal ends the grace period. A third signal ends the process by its default
/// action. When this returns, both signals have their former disposition, so that an operator can
/// end a program whose cleanup hangs; a signal during cleanup ends the process at once. Cleanup
/// that must not be interrupted belongs in `shut_down()` of a service, or happens while a Signal or
/// SignalSet of the caller, for both numbers, exists.
///
/// Returns the number of the first signal when all services have ended; 0 if there was none,
/// because all services have ended by themselves or the program stopped the loop. A stop of the
/// loop shuts nothing down. Fails with the errors of Signal::start() and of join(). Throws what
/// the loop's run() throws, at once, and exceptions of join() and shut_down(), such as those of the
/// tasks of a TaskScope, when all services have been shut down. If there are several failures, the
/// first one is reported.
/// Lifetime: the services must exist until this returns. Thread: the loop's. A server on a group of
/// loops is shut down from this loop, which is not one of the group.
template <class... Services>
  requires(detail::can_shut_down<Services> && ...)
[[nodiscard]] Result<int> run_until_signal(EventLoop& loop, Duration grace, Services&... services) {
  const std::array<detail::RunningService, sizeof...(Services)> all{
      detail::running_service(services)...};
  return detail::run_until_signal(loop, grace, all);
}

/// The same on a loop of its own, for a program whose other loops are in a LoopGroup. Throws like
/// the constructor of EventLoop.
template <class... Services>
  requires(detail::can_shut_down<Services> && ...)
[[nodiscard]] Result<int> run_until_signal(Duration grace, Services&... services) {
  EventLoop loop;
  return run_until_signal(loop, grace, services...);
}

}  // namespace tambour

#pragma GCC visibility pop
