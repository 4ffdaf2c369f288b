// What the layers above use of a TaskScope, in addition to its public functions.
#pragma once

#include <source_location>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/task/context.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

namespace tambour::detail::task {

struct ScopeAccess {
  /// TaskScope::spawn() without a handle.
  template <class T>
  static void start(TaskScope& scope, Task<T> task,
                    std::source_location at = std::source_location::current()) {
    scope.start(task.release(), scope, at, std::source_location::current());
  }
  /// TaskScope::join(), except that stop requests of the awaiting task have no effect.
  [[nodiscard]] static TaskScope::JoinToEnd join_to_end(TaskScope& scope) noexcept {
    return TaskScope::JoinToEnd(scope);
  }
  /// Invoked whenever a task has ended and has been destroyed.
  static void set_ended_handler(TaskScope& scope, Callback<void()> handler) noexcept {
    scope.set_ended_handler(std::move(handler));
  }
  /// True if the task with this context is one of the scope's tasks, or is awaited by one of them.
  [[nodiscard]] static bool runs(const TaskScope& scope, const TaskContext& context) noexcept {
    return scope.runs(context);
  }
};

}  // namespace tambour::detail::task
