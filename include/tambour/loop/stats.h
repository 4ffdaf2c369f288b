// Statistics of an event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include <tambour/base/clock.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Counters since the loop was opened, and gauges of its current state. Computing the gauges takes
/// time proportional to the number of due callbacks. Durations are measured only if
/// LoopOptions::measure_times is set.
struct LoopStats {
  std::uint64_t iterations = 0;    ///< Iterations of the loop.
  std::uint64_t waits = 0;         ///< Iterations in which the loop waited.
  std::uint64_t callbacks = 0;     ///< Callbacks invoked, not counting posted tasks.
  std::uint64_t posted = 0;        ///< Posted tasks run.
  std::uint64_t system_calls = 0;  ///< System calls of the backend: waits and changes of interest.
  std::uint64_t wakeups = 0;       ///< Wakeups by other threads.
  Duration wait_time{};            ///< Time outside callbacks, mostly in waits.
  Duration callback_time{};        ///< Time in callbacks and tasks.
  /// The longest time that one iteration spent in callbacks and tasks: the longest delay that an
  /// event may have had.
  Duration lag_max{};
  std::size_t timers = 0;   ///< Started timers that are not due.
  std::size_t pending = 0;  ///< Callbacks that are due.
  /// Started watchers and timers, and ref() calls: what keeps run() from returning.
  std::int64_t references = 0;
};

/// A callback that exceeded the threshold of the stall detector.
struct Stall {
  /// Where the program has created the watcher, timer or hook, spawned the task, given the handler
  /// or the callbacks, or called post(). A task in sleep_for() or wait_ready() is named by
  /// that call.
  std::source_location created_at;
  Duration duration;
};

}  // namespace tambour

#pragma GCC visibility pop
