// An event that tasks await and that another part of the program sets.
#pragma once

#include <coroutine>
#include <source_location>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/task_wait.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A manual-reset event. Setting it resumes the waiting tasks in the next iteration of the loop;
/// while it is set, wait() does not suspend.
///
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: if the event is destroyed while tasks wait, their waits fail with ECANCELED.
class TaskEvent {
 public:
  /// The event is not set.
  explicit TaskEvent(EventLoop& loop,
                     std::source_location created_at = std::source_location::current()) noexcept;
  TaskEvent(const TaskEvent&) = delete;
  TaskEvent& operator=(const TaskEvent&) = delete;
  ~TaskEvent();

  /// True from set() until reset().
  [[nodiscard]] bool is_set() const noexcept { return set_; }
  /// Resumes the tasks that wait, in the next iteration of the loop. Later waits return at once.
  void set() noexcept;
  /// Later waits wait for the next set().
  void reset() noexcept { set_ = false; }

  class Wait final : private detail::TaskWait {
   public:
    static constexpr bool is_cancel_safe = true;

    explicit Wait(TaskEvent& event) noexcept
        : TaskWait(*event.core_, event.created_at_), event_(event) {}
    Wait(Wait&& other) noexcept
        : TaskWait(static_cast<TaskWait&&>(other), "TaskEvent::wait()"), event_(other.event_) {}
    Wait& operator=(Wait&&) = delete;
    ~Wait() = default;

    [[nodiscard]] bool await_ready() const noexcept { return event_.set_; }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting,
                       std::source_location at = std::source_location::current()) {
      wait_in(event_.waiting_, awaiting, WaitNote(WaitKind::event, &event_), at);
    }
    /// Fails with ECANCELED if the task was asked to stop, or the event was destroyed, before the
    /// event was set.
    Result<> await_resume() const noexcept {
      if (error() != 0) return std::unexpected(system_error(error()));
      return {};
    }

   private:
    TaskEvent& event_;  ///< May be destroyed during the wait.
  };

  /// Waits until the event is set. Fails with ECANCELED if the task is asked to stop or the event
  /// is destroyed.
  [[nodiscard]] Wait wait() noexcept { return Wait(*this); }

 private:
  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  bool set_ = false;
  detail::TaskWaits waiting_;
  std::source_location created_at_;
};

}  // namespace tambour

#pragma GCC visibility pop
