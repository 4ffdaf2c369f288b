// TaskList: the lists of tasks of a loop, and the walks that must not refer to what is destroyed.
#include <tambour/detail/task_list.h>

#include <utility>

#include <tambour/task/dump.h>

#include "loop/core.h"
#include "task/debug_layout.h"

namespace tambour::detail {

void TaskList::redirect_walks(loop::Core& core, const TaskPromiseBase& task,
                              TaskPromiseBase* next) noexcept {
  const Hlist<TaskWalkNode>& walks = core.task_lists().walks;
  for (TaskWalkNode* node = walks.front(); node != nullptr; node = walks.after(*node)) {
    auto& walk = static_cast<TaskWalk&>(*node);
    if (walk.task_ == &task) walk.task_ = next;
  }
}

void TaskList::remove(loop::Core& core, TaskPromiseBase& task) noexcept {
  redirect_walks(core, task, after(task));
  task.unlink();
}

void TaskList::replace(loop::Core& core, TaskPromiseBase& task, TaskPromiseBase& next) noexcept {
  redirect_walks(core, task, &next);
  static_cast<ListHook<TaskPromiseBase>&>(next) =
      std::move(static_cast<ListHook<TaskPromiseBase>&>(task));
}

void TaskList::enlist(loop::Core& core) noexcept { core.task_lists().lists.push_front(*this); }

void TaskList::leave(loop::Core& core) noexcept {
  const Hlist<TaskWalkNode>& walks = core.task_lists().walks;
  for (TaskWalkNode* node = walks.front(); node != nullptr; node = walks.after(*node)) {
    auto& walk = static_cast<TaskWalk&>(*node);
    if (walk.list_ == this) walk.go_to(static_cast<TaskList*>(next()));
  }
  unlist();
}

[[gnu::visibility("default")]] extern const TaskDebugLayout task_debug_layout;
[[gnu::used]] constinit const TaskDebugLayout task_debug_layout{};

}  // namespace tambour::detail
