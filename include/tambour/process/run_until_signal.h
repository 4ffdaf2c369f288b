// Runs a server until SIGINT or SIGTERM, and then shuts it down gracefully.
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
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// An object that run_until_signal() can shut down: a server, a group of servers, a TaskScope, or
/// an object of a class of the program. A std::optional of one is accepted, too.
template <class S>
concept CanShutDown = requires(S& service, Duration grace) {
  { service.shut_down(grace) } -> std::same_as<Task<>>;
};

namespace detail {

template <class S>
inline constexpr bool can_shut_down = CanShutDown<S>;
template <class S>
inline constexpr bool can_shut_down<std::optional<S>> = CanShutDown<S>;

using ShutDown = Callback<Task<>(Duration)>;

template <class S>
ShutDown shut_down_of(S& service) {
  return [&service](Duration grace) { return service.shut_down(grace); };
}
template <class S>
ShutDown shut_down_of(std::optional<S>& service) {
  return [&service](Duration grace) { return service ? service->shut_down(grace) : Task<>(); };
}

[[nodiscard]] Result<int> run_until_signal(EventLoop& loop, Duration grace,
                                           std::span<const ShutDown> services);

}  // namespace detail

/// Runs `loop` until the process gets SIGINT or SIGTERM, and then shuts all services down at the
/// same time: it awaits `shut_down(grace)` of each, which stops accepting, waits up to `grace` for
/// requests and tasks in progress, asks the remaining ones to stop, and waits for them. A second
/// signal ends the grace period. A third signal ends the process by its default action.
///
///   auto server = or_throw(http::Server::listen(loop, at, handler));
///   or_throw(run_until_signal(loop, 10s, server));
///
/// Returns the number of the first signal when all services have ended; 0 if the program stopped
/// the loop before. Fails with the errors of Signal::start(). Throws what the loop's run() throws,
/// and exceptions of shut_down(), such as those of the tasks of a TaskScope.
/// Lifetime: the services must exist until this returns. Thread: the loop's. A server on a group of
/// loops is shut down from this loop, which is not one of the group.
template <class... Services>
  requires(detail::can_shut_down<Services> && ...)
[[nodiscard]] Result<int> run_until_signal(EventLoop& loop, Duration grace, Services&... services) {
  const std::array<detail::ShutDown, sizeof...(Services)> all{detail::shut_down_of(services)...};
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
