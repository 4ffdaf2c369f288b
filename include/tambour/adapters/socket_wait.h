// The waits of tasks for a socket that a client library owns. Unlike wait_ready(), the socket stays
// watched between two waits, which saves a system call for each.
#pragma once

#include <cerrno>
#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/resumption.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>
#include <tambour/task/context.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// Watches one socket for one task at a time. Call forget() before the library closes the socket.
///
/// Thread: that of the loop whose tasks wait. Lifetime: must not be destroyed during a wait.
class WatchedSocket {
 public:
  class Wait;

  WatchedSocket() = default;
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;
  ~WatchedSocket() = default;

  /// Waits until `fd` is ready for any of `interest`, and returns the events. Fails with ECANCELED
  /// if the task is asked to stop, and otherwise as wait_ready() does.
  [[nodiscard]] Wait wait(int fd, Events interest) noexcept;

  /// Stops watching. The library may close the socket then.
  void forget() noexcept { watcher_.reset(); }

 private:
  void report(Events events);

  std::optional<FdWatcher> watcher_;
  Wait* wait_ = nullptr;
};

class [[nodiscard]] WatchedSocket::Wait {
 public:
  static constexpr bool is_cancel_safe = true;

  Wait(Wait&& other) noexcept
      : socket_(other.socket_), fd_(other.fd_), interest_(other.interest_) {}
  Wait& operator=(Wait&&) = delete;
  ~Wait() { end(); }

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::readiness, fd_), at);
    awaiting_ = awaiting;
    loop_ = context.loop;
    std::optional<FdWatcher>& watcher = socket_.watcher_;
    if (watcher && watcher->fd() != fd_) watcher.reset();
    if (!watcher) {
      watcher.emplace(*loop_, fd_, interest_,
                      [&socket = socket_](Events events) { socket.report(events); });
    }
    if (watcher->interest() != interest_) watcher->set(interest_);
    if (auto started = watcher->start(); !started) {
      outcome_ = std::unexpected(started.error());
      return false;
    }
    socket_.wait_ = this;
    if (context.stop.stop_possible()) stop_.emplace(context.stop, Stop{*this});
    return true;
  }
  [[nodiscard]] Result<Events> await_resume() const noexcept { return outcome_; }

 private:
  friend class WatchedSocket;
  struct Stop {
    Wait& wait;
    void operator()() const {
      if (wait.socket_.wait_ != &wait) return;  // It has ended.
      wait.end();
      wait.outcome_ = std::unexpected(system_error(ECANCELED));
      wait.later_.emplace(*wait.loop_, [&ended = wait] { ended.resume_task(); });
      wait.later_->start(Duration::zero());
    }
  };

  Wait(WatchedSocket& socket, int fd, Events interest) noexcept
      : socket_(socket), fd_(fd), interest_(interest) {}

  void end() noexcept {
    if (socket_.wait_ == this) socket_.wait_ = nullptr;
  }
  void resume_task() { tambour::detail::Resumption::run(awaiting_); }

  WatchedSocket& socket_;
  int fd_;
  Events interest_;
  EventLoop* loop_ = nullptr;
  Result<Events> outcome_;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> later_;
  std::optional<std::stop_callback<Stop>> stop_;
};

inline WatchedSocket::Wait WatchedSocket::wait(int fd, Events interest) noexcept {
  return {*this, fd, interest};
}

inline void WatchedSocket::report(Events events) {
  Wait* const wait = std::exchange(wait_, nullptr);
  // No task waits now: the event stays in the socket for the next wait.
  if (wait == nullptr) return watcher_->stop();
  wait->outcome_ = watcher_->error() ? Result<Events>(std::unexpected(watcher_->error())) : events;
  wait->resume_task();
}

}  // namespace tambour::adapters

#pragma GCC visibility pop
