// A task's wait for a time of the wall clock (CLOCK_REALTIME), which can be set.
#pragma once

#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>

#include <tambour/base/result.h>
#include <tambour/detail/ready_node.h>
#include <tambour/detail/resumption.h>
#include <tambour/events/wall_timer.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/sleep.h>  // IWYU pragma: export
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Waits until the wall clock has reached `time`, never ends earlier, or until the next iteration
/// if `time` has passed. If the clock is set, or the system resumes from suspend, the new time
/// takes effect at once; see WallTimer. Fails with ECANCELED if the task is asked to stop, and with
/// the errors of WallTimer::start_at() (EMFILE, ENFILE, ENOMEM, ERANGE).
///
///   co_await sleep_until(std::chrono::floor<std::chrono::days>(WallTime::clock::now()) + 27h);
///
/// May be moved until it is awaited.
class WallSleep final : private detail::ReadyNode {
 public:
  static constexpr bool is_cancel_safe = true;

  /// What sleep_until() returns. Nothing happens until it is awaited.
  explicit WallSleep(WallTime time,
                     std::source_location created_at = std::source_location::current()) noexcept
      : ReadyNode(&run, created_at), time_(time) {}
  WallSleep(WallSleep&& other) noexcept : ReadyNode(&run, other.created_at()), time_(other.time_) {
    detail::check_not_awaited(other.awaiting_, "sleep_until()");
  }
  WallSleep& operator=(WallSleep&&) = delete;
  ~WallSleep() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::sleep, Duration::max()), at);
    awaiting_ = awaiting;
    timer_.emplace(*context.loop, [this] { resume_task(); }, created_at());
    outcome_ = timer_->start_at(time_);
    if (!outcome_) return false;
    stop_.emplace(context.stop, Stop{*this, detail::loop::core_of(*context.loop)});
    return true;
  }

  Result<> await_resume() const noexcept { return outcome_; }

 private:
  struct Stop {
    WallSleep& self;
    detail::loop::Core& core;  ///< Kept alive by the timer; the loop may be destroyed.
    void operator()() const noexcept;
  };

  /// Resumes the task, once. This object lives until the end of the co_await expression, so later
  /// stop requests must not reach it.
  void resume_task() {
    stop_.reset();
    detail::Resumption::run(awaiting_);
  }
  static void run(ReadyNode& ready) { static_cast<WallSleep&>(ready).resume_task(); }

  WallTime time_;
  Result<> outcome_;
  std::coroutine_handle<> awaiting_;
  std::optional<WallTimer> timer_;
  std::optional<std::stop_callback<Stop>> stop_;
};

/// Waits until `time` of the wall clock: see WallSleep.
[[nodiscard]] inline WallSleep sleep_until(
    WallTime time, std::source_location created_at = std::source_location::current()) noexcept {
  return WallSleep(time, created_at);
}

}  // namespace tambour

#pragma GCC visibility pop
