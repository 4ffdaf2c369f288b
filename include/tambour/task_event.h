// Something that tasks wait for until another part of the program says that it has happened.
#pragma once

#include <coroutine>
#include <optional>
#include <stop_token>

#include <tambour/event_loop.h>
#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

/// Set or not. Tasks that wait go on, in a turn of their loop, once it is set, and those that come
/// later do not wait, until reset(). Belongs to the thread of its loop; outlives whoever waits.
class TaskEvent {
 public:
  explicit TaskEvent(EventLoop& loop) noexcept : loop_(loop) {}
  TaskEvent(const TaskEvent&) = delete;
  TaskEvent& operator=(const TaskEvent&) = delete;

  [[nodiscard]] bool is_set() const noexcept { return set_; }
  void set() noexcept;
  void reset() noexcept { set_ = false; }

  class Wait final : private Ready {
   public:
    explicit Wait(TaskEvent& event) noexcept : Ready(&run), event_(event) {}
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return event_.set_; }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting) {
      awaiting_ = awaiting;
      event_.waiting_.push_back(*this);
      stop_.emplace(awaiting.promise().context().stop, Stop{*this});
    }
    /// ECANCELED where the task was asked to stop first.
    Result<> await_resume() const noexcept {
      if (cancelled_) return std::unexpected(system_error(ECANCELED));
      return {};
    }

   private:
    friend class TaskEvent;
    struct Stop {
      Wait& self;
      void operator()() const noexcept;
    };
    static void run(Ready& ready);

    TaskEvent& event_;
    bool cancelled_ = false;
    std::coroutine_handle<> awaiting_;
    std::optional<std::stop_callback<Stop>> stop_;
  };

  [[nodiscard]] Wait wait() noexcept { return Wait(*this); }

 private:
  EventLoop& loop_;
  bool set_ = false;
  LinkList waiting_;
};

}  // namespace tambour
