// The waits of tasks for a socket that a client library owns. Unlike wait_ready(), the socket stays
// watched between two waits, which saves a system call for each.
#pragma once

#include <cerrno>
#include <coroutine>
#include <optional>
#include <source_location>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/resumption.h>
#include <tambour/detail/stop_hook.h>
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
  class Waiter;
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
  [[nodiscard]] bool is_watching(int fd, Events interest) const noexcept {
    return watcher_ && watcher_->fd() == fd && watcher_->interest() == interest &&
           watcher_->is_started();
  }
  Result<> watch(EventLoop& loop, int fd, Events interest);
  void report(Events events);

  std::optional<FdWatcher> watcher_;
  Waiter* waiter_ = nullptr;
};

/// The base of awaitables that wait for a socket, and decide at each event whether the task is to
/// be resumed. May be moved until it is awaited.
class WatchedSocket::Waiter : private tambour::detail::StopHook {
 public:
  Waiter& operator=(Waiter&&) = delete;

 protected:
  Waiter() noexcept : StopHook(&stop) {}
  Waiter(Waiter&& /*other*/) noexcept : Waiter() {}
  ~Waiter() { end(); }

  /// For await_suspend(): the task is suspended if this succeeds.
  template <HasTaskContext Promise>
  Result<> begin(WatchedSocket& socket, int fd, Events interest,
                 std::coroutine_handle<Promise> awaiting, const std::source_location& at) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::readiness, fd), at);
    awaiting_ = awaiting;
    loop_ = context.loop;
    if (!socket.is_watching(fd, interest)) {
      auto started = socket.watch(*loop_, fd, interest);
      if (!started) return started;
    }
    socket_ = &socket;
    socket.waiter_ = this;
    context.waits.add(*this, context.stop);
    return {};
  }

  /// The socket is ready, or the wait has failed. Returns whether the task is to be resumed, which
  /// it must be after a failure; otherwise the wait continues.
  virtual bool accept(const Result<Events>& outcome) noexcept = 0;

  /// For accept(), if the wait continues for something else.
  Result<> change(int fd, Events interest) { return socket_->watch(*loop_, fd, interest); }
  /// Ends the wait without an event, for a time limit. Must be the last use of this object.
  void resume_task() {
    ignore_stop();
    end();  // The socket may be destroyed before this object.
    tambour::detail::Resumption::run(awaiting_);
  }
  /// During a wait.
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }

 private:
  friend class WatchedSocket;

  static void stop(StopHook& hook) noexcept {
    auto& self = static_cast<Waiter&>(hook);
    self.end();
    self.accept(std::unexpected(system_error(ECANCELED)));
    self.later_.emplace(*self.loop_, [&self] { self.resume_task(); });
    self.later_->start(Duration::zero());
  }
  void end() noexcept {
    WatchedSocket* const socket = std::exchange(socket_, nullptr);
    if (socket != nullptr && socket->waiter_ == this) socket->waiter_ = nullptr;
  }

  WatchedSocket* socket_ = nullptr;
  EventLoop* loop_ = nullptr;
  std::coroutine_handle<> awaiting_;
  std::optional<Timer> later_;
};

class [[nodiscard]] WatchedSocket::Wait final : public Waiter {
 public:
  static constexpr bool is_cancel_safe = true;

  Wait(Wait&&) noexcept = default;
  Wait& operator=(Wait&&) = delete;
  ~Wait() = default;

  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const auto begun = begin(socket_, fd_, interest_, awaiting, at);
    if (!begun) outcome_ = std::unexpected(begun.error());
    return begun.has_value();
  }
  [[nodiscard]] Result<Events> await_resume() const noexcept { return outcome_; }

 private:
  friend class WatchedSocket;

  Wait(WatchedSocket& socket, int fd, Events interest) noexcept
      : socket_(socket), fd_(fd), interest_(interest) {}

  bool accept(const Result<Events>& outcome) noexcept override {
    outcome_ = outcome;
    return true;
  }

  WatchedSocket& socket_;
  int fd_;
  Events interest_;
  Result<Events> outcome_;
};

inline WatchedSocket::Wait WatchedSocket::wait(int fd, Events interest) noexcept {
  return {*this, fd, interest};
}

inline Result<> WatchedSocket::watch(EventLoop& loop, int fd, Events interest) {
  if (is_watching(fd, interest)) return {};
  if (watcher_ && watcher_->fd() != fd) watcher_.reset();
  if (!watcher_) watcher_.emplace(loop, fd, interest, [this](Events events) { report(events); });
  if (watcher_->interest() != interest) watcher_->set(interest);
  return watcher_->start();
}

inline void WatchedSocket::report(Events events) {
  Waiter* const waiter = waiter_;
  // No task waits now: the event stays in the socket for the next wait.
  if (waiter == nullptr) return watcher_->stop();
  if (events == Events::error && watcher_->error()) {
    waiter->accept(std::unexpected(watcher_->error()));
  } else if (!waiter->accept(events)) {
    return;
  }
  waiter_ = nullptr;
  waiter->resume_task();
}

}  // namespace tambour::adapters

#pragma GCC visibility pop
