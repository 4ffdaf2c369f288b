// What the layers above use of a TaskScope, in addition to its public functions.
#pragma once

#include <utility>

#include <tambour/base/callback.h>
#include <tambour/task/context.h>
#include <tambour/task/scope.h>

namespace tambour::detail::task {

struct ScopeAccess {
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
