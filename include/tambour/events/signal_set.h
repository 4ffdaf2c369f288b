// POSIX signals that a task awaits.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/events/signal.h>  // IWYU pragma: export
#include <tambour/loop/event_loop.h>
#include <tambour/task/channel.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Receives signals of the process from its construction until its destruction:
///
///   auto signals = SignalSet::open(loop, {SIGHUP, SIGTERM});
///   if (!signals) co_return;
///   while (const auto signal = co_await signals->next()) {
///     if (*signal == SIGTERM) break;
///     reload();
///   }
///
/// A signal that arrives while no task waits is returned by the following next(). Like pending
/// signals (signal(7)), a signal that arrives again before next() has returned it is returned once.
/// Different signals are returned in the order in which the loop detects them; signals that it
/// detects in the same iteration are returned in the order of their numbers.
///
/// Uses a Signal for each number, so it coexists with other Signal objects and sets, also in other
/// loops: each of them gets each signal. See Signal for the signal handler, masks and fork(2).
/// Ownership: owns its watchers. May be moved, also while a task waits.
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: if the set is destroyed while tasks wait, their waits fail with ECANCELED. It may
/// outlive its loop.
/// Loop: keeps the loop running until it is destroyed.
class SignalSet {
 public:
  class Next;

  /// Starts to watch the signals. Fails with EINVAL if one of them does not exist or cannot be
  /// caught, and with the other errors of Signal::start(). Throws std::bad_alloc.
  [[nodiscard]] static Result<SignalSet> open(
      EventLoop& loop, std::span<const int> numbers,
      std::source_location created_at = std::source_location::current());
  [[nodiscard]] static Result<SignalSet> open(
      EventLoop& loop, std::initializer_list<int> numbers,
      std::source_location created_at = std::source_location::current()) {
    return open(loop, std::span<const int>(numbers.begin(), numbers.size()), created_at);
  }

  SignalSet(SignalSet&& other) noexcept;
  SignalSet& operator=(SignalSet&& other) noexcept;
  ~SignalSet();

  /// Waits for a signal and returns its number. Fails with ECANCELED. Cancellation: a next() that
  /// fails has not taken a signal. If several tasks wait, each signal resumes one of them, in the
  /// order of waiting. Must not be called on a set that was moved from.
  [[nodiscard]] Next next() noexcept;

 private:
  class [[gnu::visibility("hidden")]] State;
  explicit SignalSet(detail::OwnedPointer<State> state) noexcept;

  detail::OwnedPointer<State> state_;
};

/// The awaitable of next(). May be moved until it is awaited.
class [[nodiscard]] SignalSet::Next final {
 public:
  static constexpr bool is_cancel_safe = true;

  Next(Next&& other) noexcept = default;
  Next& operator=(Next&&) = delete;
  ~Next() = default;

  [[nodiscard]] bool await_ready() noexcept { return receive_.await_ready(); }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    receive_.await_suspend(awaiting, at);
  }
  Result<int> await_resume() noexcept {
    const Result<int> number = receive_.await_resume();
    if (number) *pending_ &= ~bit_of(*number);
    return number;
  }

 private:
  friend class SignalSet;
  Next(TaskChannel<int>::Receive receive, std::shared_ptr<std::uint64_t> pending) noexcept
      : receive_(std::move(receive)), pending_(std::move(pending)) {}
  static constexpr std::uint64_t bit_of(int number) noexcept {
    return std::uint64_t{1} << (number - 1);
  }

  TaskChannel<int>::Receive receive_;
  std::shared_ptr<std::uint64_t> pending_;  ///< The set may be destroyed during the wait.
};

}  // namespace tambour

#pragma GCC visibility pop
