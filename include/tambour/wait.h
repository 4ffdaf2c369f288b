// What a task can wait for on its loop: a time, a descriptor.
#pragma once

#include <coroutine>
#include <optional>
#include <stop_token>
#include <utility>

#include <tambour/clock.h>
#include <tambour/event_loop.h>
#include <tambour/fd_watcher.h>
#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/task.h>
#include <tambour/timer.h>

namespace tambour {

/// Waits for `delay`; see Timer. ECANCELED where the task was asked to stop first, or before:
///
///   co_await sleep_for(1s);
class SleepFor {
 public:
  explicit SleepFor(Duration delay) noexcept : delay_(delay) {}

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& context = awaiting.promise().context();
    timer_.emplace(*context.loop, [this, awaiting] {
      // It lives until the expression ends that waits for it: nobody is stopped by it any more.
      stop_.reset();
      Resumption::run(awaiting);
    });
    timer_->start(delay_);
    stop_.emplace(context.stop, Stop{*this});
    return true;
  }

  Result<> await_resume() const noexcept {
    if (cancelled_) return std::unexpected(system_error(ECANCELED));
    return {};
  }

 private:
  struct Stop {
    SleepFor& self;
    void operator()() const noexcept {
      // Whoever asks to stop is not called back from inside.
      self.cancelled_ = true;
      self.timer_->start(Duration::zero());
    }
  };

  Duration delay_;
  bool cancelled_ = false;
  std::optional<Timer> timer_;
  std::optional<std::stop_callback<Stop>> stop_;
};

[[nodiscard]] inline SleepFor sleep_for(Duration delay) noexcept { return SleepFor(delay); }

/// Waits until a descriptor is ready for any of `interest`, and says for which; see FdWatcher for
/// what can fail. ECANCELED where the task was asked to stop.
///
///   while (co_await ready(fd, Events::read)) consume(fd);
class WaitForReadiness final : private Ready {
 public:
  WaitForReadiness(int fd, Events interest) noexcept : Ready(&run), fd_(fd), interest_(interest) {}
  WaitForReadiness(const WaitForReadiness&) = delete;
  WaitForReadiness& operator=(const WaitForReadiness&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& context = awaiting.promise().context();
    awaiting_ = awaiting;
    watcher_.emplace(*context.loop, fd_, interest_, [this](Events events) { finish(events); });
    if (auto started = watcher_->start(); !started) {
      outcome_ = std::unexpected(started.error());
      return false;
    }
    stop_.emplace(context.stop, Stop{*this, *context.loop});
    return true;
  }

  Result<Events> await_resume() const noexcept { return outcome_; }

 private:
  struct Stop {
    WaitForReadiness& self;
    EventLoop& loop;
    void operator()() const noexcept;
  };

  void finish(Events events) {
    outcome_ = watcher_->error() ? Result<Events>(std::unexpected(watcher_->error())) : events;
    watcher_->stop();
    go_on();
  }

  /// Once: it lives until the expression ends that waits for it.
  void go_on() {
    stop_.reset();
    Resumption::run(awaiting_);
  }

  static void run(Ready& ready) { static_cast<WaitForReadiness&>(ready).go_on(); }

  int fd_;
  Events interest_;
  Result<Events> outcome_;
  std::coroutine_handle<> awaiting_;
  std::optional<FdWatcher> watcher_;
  std::optional<std::stop_callback<Stop>> stop_;
};

[[nodiscard]] inline WaitForReadiness ready(int fd, Events interest) noexcept {
  return {fd, interest};
}

}  // namespace tambour
