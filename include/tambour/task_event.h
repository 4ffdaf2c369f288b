// An event that tasks await and that another part of the program sets.
#pragma once

#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>

#include <tambour/detail/operation.h>
#include <tambour/event_loop.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

/// A manual-reset event. Setting it resumes the waiting tasks in the next iteration of the loop;
/// while it is set, wait() does not suspend.
///
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: if the event is destroyed while tasks wait, their waits fail with ECANCELED.
class TaskEvent {
 public:
  explicit TaskEvent(EventLoop& loop,
                     std::source_location created_at = std::source_location::current()) noexcept;
  TaskEvent(const TaskEvent&) = delete;
  TaskEvent& operator=(const TaskEvent&) = delete;
  ~TaskEvent();

  [[nodiscard]] bool is_set() const noexcept { return set_; }
  void set() noexcept;
  void reset() noexcept { set_ = false; }

  class Wait final : private detail::ReadyNode {
   public:
    explicit Wait(TaskEvent& event) noexcept
        : ReadyNode(&run, event.created_at_), event_(event), core_(event.core_) {}
    Wait(Wait&& other) noexcept
        : ReadyNode(&run, other.created_at()), event_(other.event_), core_(other.core_) {
      check_not_awaited(other.awaiting_, "TaskEvent::wait()");
    }
    Wait& operator=(Wait&&) = delete;
    ~Wait() = default;

    [[nodiscard]] bool await_ready() const noexcept { return event_.set_; }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting) {
      awaiting_ = awaiting;
      event_.waiting_.push_back(*this);
      stop_.emplace(awaiting.promise().context().stop, Stop{*this});
    }
    /// Fails with ECANCELED if the task was asked to stop, or the event was destroyed, before the
    /// event was set.
    Result<> await_resume() const noexcept {
      if (cancelled_) return std::unexpected(system_error(ECANCELED));
      return {};
    }

   private:
    friend class TaskEvent;
    struct Stop {
      Wait& self;
      void operator()() const noexcept { self.cancel(); }
    };
    void cancel() noexcept;
    static void run(ReadyNode& ready);

    TaskEvent& event_;  ///< May be destroyed during the wait.
    loop::Core* core_;
    bool cancelled_ = false;
    std::coroutine_handle<> awaiting_;
    std::optional<std::stop_callback<Stop>> stop_;
  };

  [[nodiscard]] Wait wait() noexcept { return Wait(*this); }

 private:
  loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  bool set_ = false;
  detail::IntrusiveList<detail::ReadyNode> waiting_;
  std::source_location created_at_;
};

}  // namespace tambour
