// POSIX signals as callbacks on the loop's thread: libev's ev_signal.
#pragma once

#include <csignal>  // IWYU pragma: export
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/handle.h>

namespace tambour::detail::events {
class Children;
class Signals;
}  // namespace tambour::detail::events
namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Invokes its callback after the process has received a signal. Any number of watchers, in any
/// number of loops and threads, may watch the same signal; each is notified on the thread of its
/// own loop. Signals that arrive before the callback has run are coalesced into one call, like
/// pending signals (signal(7)).
///
/// The first watcher of a signal in the process installs a handler (sigaction(2); SA_RESTART,
/// SA_ONSTACK, a full mask). The last one restores the former disposition, unless other code has
/// replaced the handler meanwhile. The kernel runs the handler on any thread that does not block
/// the signal; the handler takes no lock, allocates nothing and preserves errno. Signal masks are
/// not changed: a signal that all threads block stays pending until one unblocks it, and a signal
/// sent to one thread (pthread_kill(3)) must be unblocked in that thread. Watching SIGSEGV, SIGBUS,
/// SIGFPE or SIGILL is useful only if another process sends them: after a fault, the faulting
/// instruction would be repeated forever.
///
/// After fork(2), signals of the child process are kept until its loops are reopened
/// (EventLoop::after_fork) and do not wake the parent's loops. execve(2) resets watched
/// signals to their default action.
///
/// Ownership: owns its callback.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback; the callback
/// is not invoked afterwards. It may outlive its loop.
/// Thread: must be used on the loop's thread.
/// Loop: a started Signal keeps the loop running.
class Signal final : private detail::Handle<Signal, Callback<void(int)>> {
 public:
  using Function = Callback<void(int)>;  ///< The argument is the signal number.

  /// The Signal is not started. `number`: of the signal, for example SIGTERM.
  Signal(EventLoop& loop, int number, Function function,
         std::source_location created_at = std::source_location::current()) noexcept;
  Signal(Signal&& other) noexcept;
  Signal& operator=(Signal&& other) noexcept;
  ~Signal();

  /// Starts watching. Fails with EINVAL if there is no such signal, if it cannot be caught
  /// (SIGKILL, SIGSTOP), or if the C library reserves it; with EMFILE, ENFILE or ENOMEM if the
  /// eventfd(2) for the loop's first signal cannot be created; and with ERANGE if a select loop
  /// cannot watch that eventfd. No effect on a started Signal.
  [[nodiscard]] Result<> start() noexcept;

  /// Stops watching. A callback that was due is not invoked.
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return listed(); }
  [[nodiscard]] int number() const noexcept { return number_; }

  /// From -2, invoked last, to 2, among the callbacks that are due in an iteration; default: 0.
  /// Other values are clamped.
  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

  /// Notifies all watchers of the signal in all loops, as if the process had received it. Callable
  /// from any thread; async-signal-safe. For programs with their own signal handler. Signals
  /// without a watcher are ignored.
  static void feed(int number) noexcept;

  /// Notifies the watchers of the signal in one loop. Call it on the loop's thread. Inside a
  /// callback, it takes effect in the next iteration.
  static void feed(EventLoop& loop, int number) noexcept;

 private:
  friend class detail::events::Children;
  friend class detail::events::Signals;
  Signal(detail::loop::Core& core, int number, Function function) noexcept;
  static void run(ReadyNode& ready);

  int number_;
};

}  // namespace tambour

#pragma GCC visibility pop
