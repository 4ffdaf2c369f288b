// The lists of the tasks of a loop, which dumps of tasks and debuggers read. Not part of the public
// interface: it is visible only because a scope of tasks contains such a list.
#pragma once

#include <tambour/base/cxx23.h>
#include <tambour/detail/intrusive_list.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// A list of tasks, in the list of its loop. The layer of tasks derives from it.
class TaskListNode : public HlistHook<TaskListNode> {
 protected:
  TaskListNode() = default;
  ~TaskListNode() = default;
};

/// A position in the lists of a loop, which is moved on before the task or the list there is
/// destroyed. The layer of tasks derives from it.
class TaskWalkNode : public HlistHook<TaskWalkNode> {
 protected:
  TaskWalkNode() = default;
  ~TaskWalkNode() = default;
};

/// What a loop knows of its tasks.
struct TaskLists {
  Hlist<TaskListNode> lists;  ///< The most recent one first.
  Hlist<TaskWalkNode> walks;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
