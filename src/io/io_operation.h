// The part of a wait on a handle that exists only while a task has to wait.
#pragma once

#include <coroutine>

#include <tambour/detail/operation.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/net/io_handle.h>

namespace tambour {

struct TaskContext;
namespace detail::loop {
class Core;
}

namespace detail::io {

/// Watches a descriptor for one wait at a time, and makes the system calls of that wait when the
/// descriptor is ready.
///
/// After a wait to read has completed, the operation stays submitted, because most tasks read again
/// at once. If the descriptor is ready before a task does, the operation is cancelled.
///
/// Ownership: allocated by the first wait of a handle that cannot finish at once. The handle keeps
/// it for its next waits. A wait that the handle drops owns it from then on.
/// Thread: must be used on the loop's thread while it is busy or submitted.
class IoOperation final : public detail::Operation, public detail::StopHook {
 public:
  IoOperation() noexcept
      : Operation(detail::OperationKind::poll, &IoOperation::run), StopHook(&cancel_hook) {}
  IoOperation(const IoOperation&) = delete;
  IoOperation& operator=(const IoOperation&) = delete;
  ~IoOperation() {
    abandon();
    release();
  }

  /// Null if no wait is registered.
  [[nodiscard]] IoWait* wait() const noexcept { return wait_; }
  void set_wait(IoWait* wait) noexcept { wait_ = wait; }

  /// Starts to watch. It must not be busy, and a wait must be registered.
  void start(loop::Core& core, int descriptor, Events readiness) noexcept;
  /// The task to resume when the wait has completed, and the context whose stop cancels the wait.
  void set_awaiting(std::coroutine_handle<> awaiting, const TaskContext& context) noexcept;
  [[nodiscard]] std::coroutine_handle<> awaiting() const noexcept { return awaiting_; }

  /// Makes the wait complete with ECANCELED, unless it is about to complete already.
  void cancel() noexcept;
  /// Ends the watch without a completion.
  void abandon() noexcept {
    if (is_busy_) [[unlikely]]
      abandon_busy();
  }

 private:
  static void run(detail::ReadyNode& ready);
  static void cancel_hook(detail::StopHook& hook) noexcept {
    static_cast<IoOperation&>(hook).cancel();
  }

  /// True if it is started and has not completed.
  [[nodiscard]] bool busy() const noexcept { return is_busy_; }
  void abandon_busy() noexcept;
  void end() noexcept;
  void release() noexcept;

  IoWait* wait_ = nullptr;
  loop::Core* core_ = nullptr;  ///< The core of the loop while the operation is busy or submitted.
  std::coroutine_handle<> awaiting_;
  bool is_busy_ = false;
};

}  // namespace detail::io
}  // namespace tambour
