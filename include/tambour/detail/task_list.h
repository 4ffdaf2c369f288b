// The spawned tasks of one owner, such as a scope. Not part of the public interface: it is visible
// only because a scope contains it.
#pragma once

#include <tambour/detail/task_lists.h>
#include <tambour/detail/task_promise.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour::detail {

/// Dumps of tasks begin with the tasks of these lists. The owner enlists the list while it exists.
class TaskList : public TaskListNode {
 public:
  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;

  [[nodiscard]] TaskPromiseBase* front() const noexcept { return tasks_.front(); }
  [[nodiscard]] TaskPromiseBase* after(const TaskPromiseBase& task) const noexcept {
    return tasks_.after(task);
  }
  void push_back(TaskPromiseBase& task) noexcept { tasks_.push_back(task); }
  /// The task must be in this list.
  void remove(loop::Core& core, TaskPromiseBase& task) noexcept;
  /// Puts `next` in the place of `task`, which is in a list.
  static void replace(loop::Core& core, TaskPromiseBase& task, TaskPromiseBase& next) noexcept;

  void enlist(loop::Core& core) noexcept;
  void leave(loop::Core& core) noexcept;

 private:
  friend struct TaskListLayout;

  /// Walks that have reached `task` continue at `next`, which is null at the end of the list.
  static void redirect_walks(loop::Core& core, const TaskPromiseBase& task,
                             TaskPromiseBase* next) noexcept;

  ObservedTasks tasks_;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
