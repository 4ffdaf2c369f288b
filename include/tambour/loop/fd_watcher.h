// Readiness of a file descriptor, as a callback: libev's ev_io, libevent's event, muduo's Channel.
#pragma once

#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/loop_callback.h>
#include <tambour/detail/operation.h>
#include <tambour/loop/readiness.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Invokes its callback when a file descriptor is ready. Several watchers may watch the same file
/// descriptor.
///
/// Ownership: owns its callback, not the file descriptor. Stop or destroy the watcher before
/// closing the file descriptor.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback; the callback
/// is not invoked afterwards. It may outlive its loop, but must not be started after the loop was
/// destroyed.
/// Thread: must be used on the loop's thread.
///
/// If watching fails after start(), the watcher stops and its callback is invoked once with
/// Events::error; error() returns the reason: EBADF (not an open file descriptor), ERANGE (at or
/// above FD_SETSIZE with the select backend), ENOMEM, ENOSPC, ENOBUFS (a kernel limit), EOPNOTSUPP
/// (Events::closed without Events::read with the select backend). A pending error of the file
/// descriptor itself is different: Events::error is then reported together with the requested
/// events, and the watcher stays started. Regular files are always ready, as in poll(2).
class FdWatcher final : private detail::Operation,
                        private detail::LoopCallback<Callback<void(Events)>> {
 public:
  /// The callback, which gets the events that have occurred.
  using Function = Callback<void(Events)>;

  /// The watcher is not started. `fd` may be negative until set() supplies a file descriptor.
  FdWatcher(EventLoop& loop, int fd, Events interest, Function function,
            Trigger trigger = Trigger::level,
            std::source_location created_at = std::source_location::current()) noexcept;
  FdWatcher(FdWatcher&& other) noexcept;
  FdWatcher& operator=(FdWatcher&& other) noexcept;
  ~FdWatcher();

  /// Starts watching. Makes no system call now, and none later if the kernel already watches the
  /// file descriptor for the same events. No effect on a started watcher. Fails with EBADF if the
  /// file descriptor is negative.
  [[nodiscard]] Result<> start() noexcept;

  /// Stops watching. A callback that was due in this iteration is not invoked.
  void stop() noexcept;

  /// Changes the interest; the open file stays the same. A started watcher stays started.
  void set(Events interest, Trigger trigger = Trigger::level) noexcept;

  /// Watches `fd` from now on; a started watcher stays started. Use this overload after a close(2)
  /// and open(2), even if `fd` has the same value: it tells the loop that `fd` may refer to a
  /// different open file, which costs a system call to verify. If only the interest changes, use
  /// the other overload.
  void set(int fd, Events interest, Trigger trigger = Trigger::level) noexcept;

  /// From -2, invoked last, to 2, among the callbacks that are due in an iteration; default: 0.
  /// Other values are clamped.
  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

  /// A watcher that has failed counts as started until its callback is invoked with the error.
  [[nodiscard]] bool is_started() const noexcept { return submitted() || linked(); }
  [[nodiscard]] int fd() const noexcept { return Operation::fd; }
  [[nodiscard]] Events interest() const noexcept { return events; }

  /// Why the watcher stopped by itself; empty if it did not. Cleared by start().
  [[nodiscard]] Error error() const noexcept {
    return result < 0 && !is_started() ? system_error(result) : Error();
  }

 private:
  static void run(ReadyNode& ready);
};

}  // namespace tambour

#pragma GCC visibility pop
