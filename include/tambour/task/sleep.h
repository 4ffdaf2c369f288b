// Awaitable waits of a task: for a time, or for the readiness of a file descriptor. They may be
// moved until they are awaited.
#pragma once

#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Waits for `delay`; see Timer. Fails with ECANCELED if the task is asked to stop before the delay
/// has passed, or was asked before the wait:
///
///   co_await sleep_for(1s);
class SleepFor {
 public:
  explicit SleepFor(Duration delay,
                    std::source_location created_at = std::source_location::current()) noexcept
      : delay_(delay), created_at_(created_at) {}
  SleepFor(SleepFor&& other) noexcept : delay_(other.delay_), created_at_(other.created_at_) {
    detail::check_not_awaited(other.awaiting_, "sleep_for()");
  }
  SleepFor& operator=(SleepFor&&) = delete;
  ~SleepFor() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& context = awaiting.promise().context();
    awaiting_ = awaiting;
    auto expired = [this] {
      // This object lives until the end of the co_await expression. Stop requests after this point
      // must not reach it.
      stop_.reset();
      detail::Resumption::run(awaiting_);
    };
    timer_.emplace(*context.loop, std::move(expired), created_at_);
    timer_->start(delay_);
    stop_.emplace(context.stop, Stop{*this, detail::loop::core_of(*context.loop)});
    return true;
  }

  Result<> await_resume() const noexcept {
    if (cancelled_) return std::unexpected(system_error(ECANCELED));
    return {};
  }

 private:
  struct Stop {
    SleepFor& self;
    detail::loop::Core& core;  ///< Kept alive by the timer; the loop may be destroyed.
    void operator()() const noexcept;
  };

  Duration delay_;
  std::source_location created_at_;
  bool cancelled_ = false;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> timer_;
  std::optional<std::stop_callback<Stop>> stop_;
};

[[nodiscard]] inline SleepFor sleep_for(
    Duration delay, std::source_location created_at = std::source_location::current()) noexcept {
  return SleepFor(delay, created_at);
}

/// Waits until a file descriptor is ready for any of `interest`, and returns the events; see
/// FdWatcher for the errors. Fails with ECANCELED if the task is asked to stop.
///
///   while (co_await wait_ready(fd, Events::read)) consume(fd);
class ReadinessWait final : private detail::ReadyNode {
 public:
  ReadinessWait(int fd, Events interest,
                std::source_location created_at = std::source_location::current()) noexcept
      : ReadyNode(&run, created_at), fd_(fd), interest_(interest) {}
  ReadinessWait(ReadinessWait&& other) noexcept
      : ReadyNode(&run, other.created_at()), fd_(other.fd_), interest_(other.interest_) {
    detail::check_not_awaited(other.awaiting_, "wait_ready()");
  }
  ReadinessWait& operator=(ReadinessWait&&) = delete;
  ~ReadinessWait() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& context = awaiting.promise().context();
    awaiting_ = awaiting;
    watcher_.emplace(
        *context.loop, fd_, interest_, [this](Events events) { finish(events); }, Trigger::level,
        created_at());
    if (auto started = watcher_->start(); !started) {
      outcome_ = std::unexpected(started.error());
      return false;
    }
    stop_.emplace(context.stop, Stop{*this, detail::loop::core_of(*context.loop)});
    return true;
  }

  [[nodiscard]] Result<Events> await_resume() const noexcept { return outcome_; }

 private:
  struct Stop {
    ReadinessWait& self;
    detail::loop::Core& core;  ///< Kept alive by the watcher; the loop may be destroyed.
    void operator()() const noexcept;
  };

  void finish(Events events) {
    outcome_ = watcher_->error() ? Result<Events>(std::unexpected(watcher_->error())) : events;
    watcher_->stop();
    resume_task();
  }

  /// Resumes the task, once. This object lives until the end of the co_await expression, so later
  /// stop requests must not reach it.
  void resume_task() {
    stop_.reset();
    detail::Resumption::run(awaiting_);
  }

  static void run(ReadyNode& ready) { static_cast<ReadinessWait&>(ready).resume_task(); }

  int fd_;
  Events interest_;
  Result<Events> outcome_;
  std::coroutine_handle<> awaiting_;
  std::optional<FdWatcher> watcher_;
  std::optional<std::stop_callback<Stop>> stop_;
};

[[nodiscard]] inline ReadinessWait wait_ready(
    int fd, Events interest,
    std::source_location created_at = std::source_location::current()) noexcept {
  return {fd, interest, created_at};
}

}  // namespace tambour

#pragma GCC visibility pop
