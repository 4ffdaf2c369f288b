// A file descriptor that belongs to a loop, and the waits of tasks on it: the common part of
// streams and sockets.
//
// Programs use the derived classes: TcpStream, UnixStream, PipeStream, UdpSocket, Socket.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <source_location>
#include <utility>

#include <tambour/detail/first_call.h>
#include <tambour/loop/readiness.h>
#include <tambour/task/task.h>

namespace tambour::detail::backend {
class System;
}  // namespace tambour::detail::backend
namespace tambour::detail::io {
class IoOperation;
}  // namespace tambour::detail::io
namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
namespace detail {

class IoWait;

struct LoopChange;
}  // namespace detail

/// A file descriptor on a loop, or a closed handle. At most one task may wait to read, and one to
/// write.
///
/// Ownership: owns the file descriptor and closes it on destruction. Allocates memory for each
/// direction when a task first has to wait, and keeps it until the handle is closed.
/// Lifetime: may be moved at any time; tasks that wait on it then wait on the new object.
/// Thread: must be used on the loop's thread; see move_to().
class IoHandle {
 public:
  /// False after close(), release() and a move, and for a default-constructed handle.
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// The file descriptor, which the handle still owns; -1 if the handle is closed.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Must not be called on a default-constructed handle.
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }

 protected:
  IoHandle() = default;
  /// Takes ownership of `fd`. If `fd` is not a socket it must be in non-blocking mode. Aborts if
  /// called on a thread other than the loop's, with a message that names `function`.
  IoHandle(EventLoop& loop, int fd,
           std::source_location function = std::source_location::current()) noexcept;
  IoHandle(IoHandle&& other) noexcept;
  IoHandle& operator=(IoHandle&& other) noexcept;
  ~IoHandle() {
    if (is_open()) close();
  }

  // Protected, because a stream that closes must also restore the blocking mode of a shared pipe.
  // The derived classes provide public versions.
  void close() noexcept;
  [[nodiscard]] int release() noexcept;

  /// Makes the wait to write, or to read, fail with ECANCELED.
  void stop_waiting(bool to_write) noexcept;

  /// False for a default-constructed handle.
  [[nodiscard]] bool has_loop() const noexcept { return loop_ != nullptr; }
  /// The handle must be open.
  [[nodiscard]] detail::backend::System& system() const noexcept { return *system_; }

 private:
  friend class detail::IoWait;
  friend struct detail::LoopChange;

  [[nodiscard]] detail::io::IoOperation*& operation(bool to_write) noexcept {
    return operations_[to_write ? 1 : 0];
  }

  void take(IoHandle& other) noexcept;
  /// Between these two calls the handle may be moved to, and destroyed on, another thread.
  void leave_loop() noexcept;
  void enter_loop(EventLoop& loop) noexcept;

  EventLoop* loop_ = nullptr;
  detail::backend::System* system_ = nullptr;
  /// To read and to write; null until a task has waited. Owned.
  std::array<detail::io::IoOperation*, 2> operations_{};
  int fd_ = -1;  ///< Last, so that derived classes can use the padding.
};

namespace detail {

/// A task's wait on a handle: system calls that are repeated when the descriptor is ready, until
/// one of them finishes. It is cancelled when the task is asked to stop or the handle is closed,
/// and may be moved until it is awaited. Fails with ENOMEM if there is no memory for the first wait
/// of the handle in this direction.
///
/// An awaitable is part of the coroutine frame at each co_await expression, so it is small: what
/// the loop needs to watch the descriptor belongs to the handle.
class IoWait {
 public:
  IoWait& operator=(IoWait&&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) noexcept {
    if (try_now_or_wait()) return false;
    note_wait(awaiting, WaitNote(wait_kind(), fd()), at);
    resume_when_completed(awaiting, awaiting.promise().context());
    return true;
  }

 protected:
  /// Waits to write if `readiness` is Events::write, otherwise to read.
  IoWait(IoHandle& handle, Events readiness, detail::FirstCall first) noexcept
      : to_write_(readiness == Events::write), first_call_(first), handle_(&handle) {}
  IoWait(IoWait&& other) noexcept
      : outcome(other.outcome),
        to_write_(other.to_write_),
        first_call_(other.first_call_),
        handle_(other.handle_) {
    if (other.state_ != State::created) [[unlikely]]
      fail_on_moved_wait("a function of a stream or socket");
  }
  virtual ~IoWait() {
    if (state_ == State::registered || state_ == State::dropped) leave();
  }

  /// Null if the handle was closed.
  [[nodiscard]] IoHandle* handle() const noexcept { return is_attached() ? handle_ : nullptr; }
  /// For step().
  [[nodiscard]] int fd() const noexcept { return handle_->fd(); }
  [[nodiscard]] Events readiness() const noexcept {
    return to_write_ ? Events::write : Events::read;
  }

  /// Makes the next system calls. Returns true if the wait has finished, with `outcome`, and false
  /// if it has to continue until the descriptor is ready.
  [[nodiscard]] virtual bool step(loop::Core& core) noexcept = 0;
  /// For dumps of tasks.
  [[nodiscard]] virtual WaitKind wait_kind() const noexcept {
    return to_write_ ? WaitKind::write : WaitKind::read;
  }
  /// Called when the wait has completed; never inside the functions that start it. Resumes the
  /// awaiting task. An override may destroy the wait, or start it again.
  virtual void completed();
  /// Called after the handle has dropped this wait, because it was closed, released or moved to
  /// another loop, or by stop_waiting(). An override must end the wait.
  virtual void detached() noexcept;

  /// For step(), after each system call. Returns false if it would have blocked (EAGAIN); otherwise
  /// sets `outcome`, and returns true.
  [[nodiscard]] bool finish(std::int32_t answer) noexcept;
  /// For step(), between two system calls that each made progress: returns false if the wait has to
  /// continue later, so that it starves no other.
  [[nodiscard]] bool may_continue(loop::Core& core) const noexcept;

  /// Makes the first system calls, unless the wait begins with waiting. Returns true if it
  /// finished, with `outcome`; otherwise nothing is pending.
  [[nodiscard]] bool try_now() noexcept;
  /// Starts the wait. Returns true if it finished at once, with `outcome`. Otherwise it is pending
  /// and registered with the handle, which cancels it when it is closed.
  [[nodiscard]] bool try_now_or_wait() noexcept;
  /// Starts a registered wait again, after it has completed, when the descriptor is ready.
  void wait_again() noexcept;
  /// Sets what the stall detector names. The wait must be pending; a task sets it by itself.
  void set_created_at(const std::source_location& created_at) noexcept;
  /// Makes a pending wait complete with ECANCELED, unless it is about to complete already.
  void cancel() noexcept;
  /// Ends the wait without a completion, if it is pending, and its registration.
  void leave() noexcept;
  /// True if the backend cannot watch the descriptor; `outcome` is the error then.
  [[nodiscard]] bool cannot_be_watched() const noexcept { return cannot_be_watched_; }

  /// A result that is not negative, or a negated errno value.
  std::int32_t outcome = 0;  // NOLINT(readability-identifier-naming): for derived classes.

 private:
  friend class tambour::IoHandle;
  friend class io::IoOperation;
  /// `registered`: the operation of the handle refers to this wait. `dropped`: the handle has
  /// passed the operation on to this wait.
  enum class State : std::uint8_t { created, registered, dropped, ended };

  [[nodiscard]] bool is_attached() const noexcept {
    return state_ == State::created || state_ == State::registered;
  }
  /// Requires that the wait is registered or dropped.
  [[nodiscard]] io::IoOperation& operation() const noexcept {
    return state_ == State::dropped ? *operation_ : *handle_->operation(to_write_);
  }
  void resume_when_completed(std::coroutine_handle<> awaiting, const TaskContext& context) noexcept;

  bool to_write_;
  bool cannot_be_watched_ = false;
  detail::FirstCall first_call_;
  State state_ = State::created;
  // clang-tidy takes the members of an anonymous union for public ones.
  union {
    IoHandle* handle_;            // NOLINT(readability-identifier-naming)
    io::IoOperation* operation_;  // NOLINT(readability-identifier-naming): if dropped. Owned.
  };
};

}  // namespace detail

}  // namespace tambour

#pragma GCC visibility pop
