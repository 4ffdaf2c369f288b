// A file descriptor that belongs to a loop, and the waits of tasks on it: the common part of
// streams and sockets.
//
// Programs use the derived classes: TcpStream, UnixStream, PipeStream, UdpSocket, Socket.
#pragma once

#include <array>
#include <coroutine>
#include <optional>
#include <source_location>
#include <stop_token>
#include <utility>

#include <tambour/detail/io_operation.h>
#include <tambour/task.h>

namespace tambour {

class EventLoop;
class IoWait;
namespace backend {
class System;
}
namespace detail {
struct LoopChange;
}

/// A file descriptor on a loop, or a closed handle. At most one task may wait to read, and one to
/// write.
///
/// Ownership: owns the file descriptor and closes it on destruction.
/// Lifetime: may be moved at any time; tasks that wait on it then wait on the new object.
/// Thread: must be used on the loop's thread; see move_to().
class IoHandle {
 public:
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// The file descriptor, which the handle still owns; -1 if the handle is closed.
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
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
  [[nodiscard]] backend::System& system() const noexcept { return *system_; }

 private:
  friend class IoWait;
  friend struct detail::LoopChange;

  void take(IoHandle& other) noexcept;
  /// Between these two calls the handle may be moved to, and destroyed on, another thread.
  void leave_loop() noexcept;
  void enter_loop(EventLoop& loop) noexcept;
  IoWait*& waiting(bool to_write) noexcept { return waits_[to_write ? 1 : 0]; }

  EventLoop* loop_ = nullptr;
  backend::System* system_ = nullptr;
  std::array<IoWait*, 2> waits_{};  ///< The waits to read and to write.
  int fd_ = -1;                     ///< Last, so that derived classes can use the padding.
};

/// A task's wait on a handle: an operation that is cancelled when the task is asked to stop or the
/// handle is closed. It may be moved until it is awaited.
class IoWait : protected detail::IoOperation {
 public:
  IoWait& operator=(IoWait&&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    awaiting_ = awaiting;
    if (try_now_or_wait()) return false;
    stop_.emplace(awaiting.promise().context().stop, Stop{*this});
    return true;
  }

 protected:
  /// Waits to write if `readiness` is Events::write, otherwise to read.
  IoWait(IoHandle& handle, Events readiness, detail::FirstCall first) noexcept
      : IoOperation(readiness, first), handle_(&handle), to_write_(readiness == Events::write) {}
  IoWait(IoWait&& other) noexcept
      : IoOperation(static_cast<IoOperation&&>(other)),
        handle_(std::exchange(other.handle_, nullptr)),
        to_write_(other.to_write_) {
    check_not_awaited(other.awaiting_, "a function of a stream or socket");
  }
  ~IoWait() override { leave(); }

  /// Null if the handle was closed.
  [[nodiscard]] IoHandle* handle() const noexcept { return handle_; }

  /// Resumes the awaiting task.
  void completed() override;
  /// Called after the handle has dropped this wait, because it was closed, released or moved to
  /// another loop, or by stop_waiting(). An override must end the operation.
  virtual void detached() noexcept { cancel(); }

  /// Starts the operation. Returns true if it finished at once, with `outcome`. Otherwise the
  /// operation is pending and registered with the handle, which cancels it when it is closed.
  [[nodiscard]] bool try_now_or_wait() noexcept;
  /// Starts the operation. Returns true if it finished at once, with `outcome`. Otherwise the
  /// operation is pending, but the handle cannot cancel it: the caller must destroy or register it.
  [[nodiscard]] bool try_now() noexcept;
  void leave() noexcept;

 private:
  friend class IoHandle;
  struct Stop {
    IoWait& self;
    void operator()() const noexcept { self.cancel(); }
  };

  IoHandle* handle_;
  bool to_write_;
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

}  // namespace tambour
