// Delays between the attempts of a program's own operations.
#pragma once

#include <optional>

#include <tambour/base/clock.h>
#include <tambour/net/retry_policy.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The delays of a RetryPolicy, for a program that repeats its own operations:
///
///   Backoff backoff(loop, {.attempts_max = 5});
///   for (;;) {
///     auto answer = co_await ask();
///     if (answer) co_return answer;
///     const auto delay = backoff.next();
///     if (!delay || !co_await sleep_for(*delay)) co_return answer;
///   }
/// Thread: must be used on the loop's thread. Lifetime: the loop must exist longer.
class Backoff {
 public:
  /// `loop` supplies the random part of the delays.
  Backoff(EventLoop& loop, const RetryPolicy& policy) noexcept;

  /// The delay before the next attempt; no value if `attempts_max` attempts have been made. Call it
  /// after each failed attempt. In a simulation, the random part depends on the seed only.
  [[nodiscard]] std::optional<Duration> next() noexcept;
  /// Call it after a success: the next failure counts as the first one, with the first delay.
  void reset() noexcept;
  /// Failed attempts since the last reset().
  [[nodiscard]] unsigned failures() const noexcept { return failures_; }

 private:
  EventLoop* loop_;
  RetryPolicy policy_;
  Duration next_;
  unsigned failures_ = 0;
};

}  // namespace tambour

#pragma GCC visibility pop
