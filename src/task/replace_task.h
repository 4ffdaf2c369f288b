// A task that ends by running another one in its place.
#pragma once

#include <concepts>
#include <coroutine>
#include <utility>

#include <tambour/detail/resumption.h>
#include <tambour/detail/task_list.h>
#include <tambour/detail/task_promise.h>
#include <tambour/task/task.h>

#include "loop/core.h"

namespace tambour::detail::task {

/// `co_await ReplaceTask(std::move(next));` is the last statement of a task that was started by
/// ScopeAccess::start(): destroys the task, frees its frame, and runs `next` as a task of the scope
/// in its place. If the task awaited `next` instead, its frame would exist as long as that of
/// `next`. `next` must not refer to objects of the task. The scope's
/// owner must have no handle of the task, which must not be awaited by another one.
class ReplaceTask {
 public:
  /// `next` must not be empty.
  explicit ReplaceTask(Task<> next) noexcept : next_(std::move(next)) {}
  ReplaceTask(const ReplaceTask&) = delete;
  ReplaceTask& operator=(const ReplaceTask&) = delete;
  ~ReplaceTask() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  /// Destroys this object, which is in the frame.
  template <std::derived_from<TaskPromiseBase> Promise>
  void await_suspend(std::coroutine_handle<Promise> replaced) {
    TaskPromiseBase& promise = replaced.promise();
    TaskPromiseBase& next = next_.release();
    next.observe_from(promise.observer(), promise.context());
    TaskList::replace(loop::core_of(*promise.context().loop), promise, next);
    replaced.destroy();
    Resumption::transfer(replaced, next.handle());
  }
  static void await_resume() noexcept {}

 private:
  Task<> next_;
};

}  // namespace tambour::detail::task
