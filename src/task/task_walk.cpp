// TaskWalk: the snapshots of the tasks of a loop.
#include <algorithm>
#include <cstdint>

#include <tambour/detail/resumption.h>
#include <tambour/detail/task_list.h>
#include <tambour/task/dump.h>

#include "loop/core.h"
#include "task/promise_access.h"

namespace tambour {
namespace {

using detail::TaskPromiseBase;
using detail::task::PromiseAccess;

bool runs_now(const TaskPromiseBase& task) noexcept {
  const detail::Resumption* resumption = detail::Resumption::innermost();
  while (resumption != nullptr && resumption->running() != PromiseAccess::frame(task))
    resumption = resumption->outer();
  return resumption != nullptr;
}

/// Appends one task after another, up to the maximum of a tree.
class TreeWriter {
 public:
  TreeWriter(std::vector<TaskSnapshot>& to, std::int64_t now_ns)
      : to_(to), end_(to.size() + TaskWalk::tree_tasks_max), now_ns_(now_ns) {}

  /// Follows chains of tasks without recursion, because they may be long.
  void append(const TaskPromiseBase& first, const void* parent, std::size_t depth) {
    const TaskPromiseBase* task = &first;
    while (to_.size() < end_) {
      TaskSnapshot& snapshot = to_.emplace_back();
      snapshot.task = task;
      snapshot.parent = parent;
      snapshot.depth = depth;
      snapshot.spawned_at = task->context().spawned_at;
      snapshot.awaits_at = PromiseAccess::place(*task);
      const TaskPromiseBase* const awaited = PromiseAccess::awaited(*task);
      if (awaited == nullptr) return describe_wait(*task, snapshot);
      parent = task;
      ++depth;
      if (PromiseAccess::is_observed(*awaited)) {
        snapshot.awaits = WaitKind::tasks;
        return append_ring(*awaited, parent, depth);
      }
      snapshot.awaits = WaitKind::task;
      task = awaited;
    }
  }

 private:
  void append_ring(const TaskPromiseBase& first, const void* parent, std::size_t depth) {
    const TaskPromiseBase* task = &first;
    do {
      if (!PromiseAccess::has_ended(*task)) append(*task, parent, depth);
      task = &PromiseAccess::next_in_ring(*task);
    } while (task != &first);
  }

  void describe_wait(const TaskPromiseBase& task, TaskSnapshot& snapshot) const noexcept {
    if (runs_now(task)) {
      snapshot.awaits = WaitKind::running;
      return;
    }
    const WaitNote wait = PromiseAccess::wait(task);
    snapshot.awaits = wait.kind();
    if (wait.kind() == WaitKind::unknown) return;
    snapshot.waited = Duration(PromiseAccess::waited_ns(task, now_ns_));
    switch (wait.kind()) {
      case WaitKind::read:
      case WaitKind::write:
      case WaitKind::accept:
      case WaitKind::connect:
      case WaitKind::readiness:
        snapshot.fd = static_cast<int>(wait.value());
        break;
      case WaitKind::sleep:
        if (wait.value() != WaitNote::time_max) {
          snapshot.time_left = std::max(Duration(wait.value()) - snapshot.waited, Duration::zero());
        }
        break;
      default:
        // Nothing is read there.
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        snapshot.object = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(wait.value()));
        break;
    }
  }

  std::vector<TaskSnapshot>& to_;
  std::size_t end_;
  std::int64_t now_ns_;
};

}  // namespace

TaskWalk::TaskWalk(EventLoop& loop) noexcept : core_(&detail::loop::core_of(loop)) {
  core_->check_thread();
  core_->attach();
  core_->task_lists().walks.push_front(*this);
  go_to(static_cast<detail::TaskList*>(core_->task_lists().lists.front()));
}

TaskWalk::~TaskWalk() {
  core_->check_thread_unless_closed(core_->created_at());
  unlist();
  core_->detach();
}

void TaskWalk::go_to(detail::TaskList* list) noexcept {
  list_ = list;
  task_ = list != nullptr ? list->front() : nullptr;
}

std::vector<TaskSnapshot> TaskWalk::next(std::size_t tasks_max) {
  std::vector<TaskSnapshot> tasks;
  if (core_->closed()) return tasks;
  core_->check_thread();
  const std::int64_t now_ns = core_->clock_ns();
  while (list_ != nullptr && tasks.size() < std::max<std::size_t>(tasks_max, 1)) {
    if (task_ == nullptr) {
      go_to(static_cast<detail::TaskList*>(list_->next()));
      continue;
    }
    TreeWriter(tasks, now_ns).append(*task_, nullptr, 0);
    task_ = list_->after(*task_);
  }
  return tasks;
}

}  // namespace tambour
