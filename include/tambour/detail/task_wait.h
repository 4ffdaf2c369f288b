// A task's wait in the queue of an object of one loop: an event, a channel or a mutex. Not part of
// the public interface: it is visible only because an awaitable derives from it.
#pragma once

#include <coroutine>
#include <source_location>

#include <tambour/detail/ready_node.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/task/task.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour::detail {

class TaskWait;
/// Waiting tasks, in the order of their arrival.
using TaskWaits = IntrusiveList<TaskWait, ReadyNode>;

/// Ends once: by complete(), or with ECANCELED when the task is asked to stop. The task is resumed
/// in a later iteration of the loop. May be moved until it is awaited; destroying it removes it
/// from its queue.
class TaskWait : public ReadyNode, private StopHook {
 public:
  TaskWait& operator=(TaskWait&&) = delete;

  /// Removes the wait from its queue and resumes the task in a later iteration, if the loop still
  /// exists. `error` is an errno value; 0: success. Later stop requests have no effect.
  void complete(int error) noexcept;

 protected:
  TaskWait(loop::Core& core, const std::source_location& created_at) noexcept
      : ReadyNode(&run, created_at), StopHook(&cancel_hook), core_(&core) {}
  /// `function` returned the awaitable.
  TaskWait(TaskWait&& other, const char* function) noexcept
      : TaskWait(*other.core_, other.created_at()) {
    check_not_awaited(other.awaiting_, function);
  }
  ~TaskWait() = default;

  /// `wait` and `at` are for dumps of tasks.
  template <HasTaskContext Promise>
  void wait_in(TaskWaits& queue, std::coroutine_handle<Promise> awaiting, WaitNote wait,
               const std::source_location& at) {
    note_wait(awaiting, wait, at);
    awaiting_ = awaiting;
    queue.push_back(*this);
    const TaskContext& context = awaiting.promise().context();
    set_created_at(context.spawned_at);
    context.waits.add(*this, context.stop);
  }

  /// Like complete(), but a stop request until the task is resumed still cancels the wait.
  void complete_unless_stopped() noexcept;
  /// Called when a stop request cancels the wait.
  virtual void cancelled() noexcept {}

  /// The error of the wait, an errno value.
  [[nodiscard]] int error() const noexcept { return error_; }
  void set_error(int error) noexcept { error_ = error; }

 private:
  static void cancel_hook(StopHook& hook) noexcept { static_cast<TaskWait&>(hook).cancel(); }
  void cancel() noexcept;
  static void run(ReadyNode& ready);

  loop::Core* core_;
  int error_ = 0;
  std::coroutine_handle<> awaiting_;
};

/// A TaskWait that is assigned something between its end and the resumption of the task.
class AssignedTaskWait : public TaskWait, private ListHook<AssignedTaskWait> {
 public:
  using List = IntrusiveList<AssignedTaskWait>;

 protected:
  using TaskWait::TaskWait;
  ~AssignedTaskWait() = default;

  [[nodiscard]] bool is_assigned() const noexcept { return ListHook<AssignedTaskWait>::linked(); }
  void unassign() noexcept { ListHook<AssignedTaskWait>::unlink(); }
};

}  // namespace tambour::detail

#pragma GCC visibility pop
