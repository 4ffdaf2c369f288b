// Where debuggers find what dumps of tasks show: tools/tambour_gdb.py reads this table, so that it
// needs no debug information.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tambour/detail/task_list.h>
#include <tambour/task/context.h>

#include "task/promise_access.h"

// The classes have base classes with members, so offsetof() is supported conditionally: by GCC and
// by clang.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace tambour::detail {

/// Offsets in bytes. The links of a list are the first members of what is listed. The script knows
/// the order of the members of these classes.
struct TaskListLayout {
  std::uint32_t version = 1;
  std::uint32_t tasks = offsetof(TaskList, tasks_);
};

struct task::PromiseAccess::Layout {
  std::uint32_t awaited = offsetof(TaskPromiseBase, awaited_);
  std::uint32_t context = offsetof(TaskPromiseBase, context_);
  std::uint32_t waiter = offsetof(TaskPromiseBase, waiter_);
  std::uint32_t ended = offsetof(TaskPromiseBase, ended_);
#ifndef TAMBOUR_NO_TASK_DUMP
  std::uint32_t wait = offsetof(TaskPromiseBase, wait_);
  std::uint32_t place = offsetof(TaskPromiseBase, awaits_at_);
  std::uint32_t since = offsetof(TaskPromiseBase, waits_since_);
#else
  std::uint32_t wait = 0;  ///< Zero: waits are not recorded.
  std::uint32_t place = 0;
  std::uint32_t since = 0;
#endif
  std::uint32_t since_shift = task::PromiseAccess::since_shift;
  std::uint32_t observed = static_cast<std::uint32_t>(TaskPromiseBase::Waiter::observer);
  std::uint32_t spawned_at = offsetof(TaskContext, spawned_at);
};

struct TaskDebugLayout {
  TaskListLayout lists;
  task::PromiseAccess::Layout tasks;
};

}  // namespace tambour::detail

#pragma GCC diagnostic pop
