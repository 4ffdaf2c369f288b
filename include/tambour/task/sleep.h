// Awaitable waits of a task: for a time, or for the readiness of a file descriptor. They may be
// moved until they are awaited.
#pragma once

#include <cerrno>
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

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// A wait for the expiry of a timer. May be moved until it is awaited.
class Sleep {
 public:
  Sleep& operator=(Sleep&&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

 protected:
  explicit Sleep(std::source_location created_at) noexcept : created_at_(created_at) {}
  /// `function` returned the awaitable.
  Sleep(Sleep&& other, const char* function) noexcept : created_at_(other.created_at_) {
    check_not_awaited(other.awaiting_, function);
  }
  ~Sleep() = default;

  /// `start` starts the timer.
  template <HasTaskContext Promise>
  void sleep(std::coroutine_handle<Promise> awaiting, auto start) {
    const TaskContext& context = awaiting.promise().context();
    awaiting_ = awaiting;
    auto expired = [this] {
      // This object lives until the end of the co_await expression. Stop requests after this point
      // must not reach it.
      stop_.reset();
      Resumption::run(awaiting_);
    };
    timer_.emplace(*context.loop, std::move(expired),
                   created_at_.line() != 0 ? created_at_ : context.spawned_at);
    start(*timer_);
    stop_.emplace(context.stop, Stop{*this, loop::core_of(*context.loop)});
  }

  template <HasTaskContext Promise>
  static void note_sleep_until(std::coroutine_handle<Promise> awaiting, TimePoint time,
                               const std::source_location& at) noexcept {
    // A time in the past may be so far away that the difference is no duration.
    const TimePoint now = awaiting.promise().context().loop->now();
    Duration left = Duration::max();
    if (time != never) left = time > now ? time - now : Duration::zero();
    note_wait(awaiting, WaitNote(WaitKind::sleep, left), at);
  }

  [[nodiscard]] bool is_cancelled() const noexcept { return cancelled_; }
  /// The wait fails with ECANCELED in a later iteration. No effect after the loop was destroyed.
  void cancel(const loop::Core& core) noexcept;

 private:
  struct Stop {
    Sleep& self;
    loop::Core& core;  ///< Kept alive by the timer; the loop may be destroyed.
    void operator()() const noexcept { self.cancel(core); }
  };

  std::source_location created_at_;
  bool cancelled_ = false;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> timer_;
  std::optional<std::stop_callback<Stop>> stop_;
};

}  // namespace detail

/// Waits for `delay`; see Timer. Fails with ECANCELED if the task is asked to stop before the delay
/// has passed, or was asked before the wait:
///
///   co_await sleep_for(1s);
class SleepFor final : private detail::Sleep {
 public:
  static constexpr bool is_cancel_safe = true;

  /// What sleep_for() returns. Nothing happens until it is awaited.
  explicit SleepFor(Duration delay,
                    std::source_location created_at = std::source_location::current()) noexcept
      : Sleep(created_at), delay_(delay) {}
  SleepFor(SleepFor&& other) noexcept
      : Sleep(static_cast<Sleep&&>(other), "sleep_for()"), delay_(other.delay_) {}
  SleepFor& operator=(SleepFor&&) = delete;
  ~SleepFor() = default;

  using Sleep::await_ready;

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_wait(awaiting, WaitNote(WaitKind::sleep, delay_), at);
    sleep(awaiting, [this](Timer& timer) { timer.start(delay_); });
    return true;
  }

  Result<> await_resume() const noexcept {
    if (is_cancelled()) return std::unexpected(system_error(ECANCELED));
    return {};
  }

 private:
  Duration delay_;
};

/// Waits for `delay`: see SleepFor.
[[nodiscard]] inline SleepFor sleep_for(
    Duration delay, std::source_location created_at = std::source_location::current()) noexcept {
  return SleepFor(delay, created_at);
}

/// Waits until `time` on the monotonic clock, or until the next iteration if `time` has passed; see
/// Timer::start_at(). Fails with ECANCELED as sleep_for() does. `never` waits until the task is
/// asked to stop. The time includes no time during which the system is suspended; to wait for a
/// time of the wall clock, use sleep_until(WallTime) of <tambour/events/wall_sleep.h>.
///
///   co_await sleep_until(Clock::now() + 1s);
class SleepUntil final : private detail::Sleep {
 public:
  static constexpr bool is_cancel_safe = true;

  /// What sleep_until() returns. Nothing happens until it is awaited.
  explicit SleepUntil(TimePoint time,
                      std::source_location created_at = std::source_location::current()) noexcept
      : Sleep(created_at), time_(time) {}
  SleepUntil(SleepUntil&& other) noexcept
      : Sleep(static_cast<Sleep&&>(other), "sleep_until()"), time_(other.time_) {}
  SleepUntil& operator=(SleepUntil&&) = delete;
  ~SleepUntil() = default;

  using Sleep::await_ready;

  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_sleep_until(awaiting, time_, at);
    sleep(awaiting, [this](Timer& timer) { timer.start_at(time_); });
  }

  Result<> await_resume() const noexcept {
    if (is_cancelled()) return std::unexpected(system_error(ECANCELED));
    return {};
  }

 private:
  TimePoint time_;
};

/// Waits until `time`: see SleepUntil.
[[nodiscard]] inline SleepUntil sleep_until(
    TimePoint time, std::source_location created_at = std::source_location::current()) noexcept {
  return SleepUntil(time, created_at);
}

/// Waits until a file descriptor is ready for any of `interest`, and returns the events; see
/// FdWatcher for the errors. Fails with ECANCELED if the task is asked to stop.
///
///   while (co_await wait_ready(fd, Events::read)) consume(fd);
class ReadinessWait final : private detail::ReadyNode {
 public:
  static constexpr bool is_cancel_safe = true;

  /// What wait_ready() returns. Nothing happens until it is awaited.
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
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::readiness, fd_), at);
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

/// Waits for events of a file descriptor: see ReadinessWait. `fd` must stay open meanwhile.
[[nodiscard]] inline ReadinessWait wait_ready(
    int fd, Events interest,
    std::source_location created_at = std::source_location::current()) noexcept {
  return {fd, interest, created_at};
}

}  // namespace tambour

#pragma GCC visibility pop
