// When an operation that has failed is tried again.
#pragma once

#include <chrono>
#include <limits>

#include <tambour/base/clock.h>

#pragma GCC visibility push(default)

namespace tambour {

/// How often something is attempted, and the delays between the attempts: exponential back-off with
/// jitter. Trivially destructible, so that it may be written in braces inside a co_await expression
/// even with GCC 12.
struct RetryPolicy {
  static constexpr unsigned unlimited = std::numeric_limits<unsigned>::max();

  /// The number of attempts in all, the first one included. 1, and also 0: nothing is repeated.
  unsigned attempts_max = 1;
  /// The delay before the second attempt. It doubles with each further one up to `delay_max`.
  /// Negative durations count as zero.
  Duration delay = std::chrono::milliseconds(100);
  Duration delay_max = std::chrono::seconds(10);
  /// The part of each delay that is random, from 0 (none) to 1, so that the clients of a server
  /// that was down do not come back at the same moment: 0.5 means between half of the delay and all
  /// of it. Values outside the range are clamped.
  double jitter = 0.5;
};

}  // namespace tambour

#pragma GCC visibility pop
