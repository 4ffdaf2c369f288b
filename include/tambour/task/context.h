// What a task inherits: its loop, and the token that asks it to stop.
#pragma once

#include <concepts>
#include <source_location>
#include <stop_token>

#include <tambour/base/cxx23.h>
#include <tambour/detail/stop_hook.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The context that a task inherits from the task that awaits it or from its scope. Outlives the
/// task.
struct TaskContext {
  EventLoop* loop = nullptr;
  /// If a stop is requested, the pending wait of the task ends early with ECANCELED. Request it on
  /// the loop's thread.
  std::stop_token stop;
  /// when_all(), when_any() and timeout() give their tasks a context of their own; `outer` is then
  /// the context of the awaiting task. A TaskScope has a context for each place in which tasks are
  /// spawned; `outer` is null in the first one, and refers to it in the others.
  const TaskContext* outer = nullptr;
  /// Where the task was spawned: for the stall detector.
  std::source_location spawned_at = {};
  /// Of the library: the pending waits that a stop request cancels.
  mutable detail::StopHooks waits = {};
};

/// A coroutine promise that has a TaskContext.
template <class Promise>
concept HasTaskContext = requires(const Promise& promise) {
  { promise.context() } -> std::convertible_to<const TaskContext&>;
};

}  // namespace tambour

#pragma GCC visibility pop
