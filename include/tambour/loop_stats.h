// What a loop can tell about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include <tambour/clock.h>

namespace tambour {

/// Counts since the loop was opened, and what is there at the moment, which takes a step for each
/// timer and each callback that is due. Times are measured only where
/// LoopOptions::measure_times says so, since each costs a reading of the clock in each turn.
struct LoopStats {
  std::uint64_t turns = 0;         ///< Iterations of the loop.
  std::uint64_t waits = 0;         ///< Turns that went to sleep.
  std::uint64_t callbacks = 0;     ///< Callbacks run, posted tasks not counted.
  std::uint64_t tasks = 0;         ///< Posted tasks run.
  std::uint64_t system_calls = 0;  ///< Made by the backend: waits, changes of interest.
  std::uint64_t wake_ups = 0;      ///< Times that another thread had to wake it.
  Duration waiting{};              ///< Time between the turns' callbacks, sleeping mostly.
  Duration calling{};              ///< Time in callbacks and tasks.
  Duration lag_max{};              ///< The longest time that one turn spent in callbacks and tasks,
                                   ///< which is what an event may have had to wait.
  std::size_t timers = 0;          ///< Timers in the heap, stopped ones that are still there too.
  std::size_t pending = 0;         ///< Callbacks that are due.
  std::int64_t references = 0;     ///< Started watchers, timers and ref()s: what keeps run() going.
};

/// A callback that took longer than it should.
struct Stall {
  std::source_location created_at;  ///< Where its watcher, timer or hook was made.
  Duration took;
};

}  // namespace tambour
