// Signals as callbacks on the loop's thread: libev's ev_signal.
#pragma once

#include <csignal>  // IWYU pragma: export
#include <source_location>

#include <tambour/callback.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class Children;
class Core;
class Signals;
}  // namespace loop

/// Calls back after the process was sent a signal. Any number may watch one signal, in any number
/// of loops and threads: all are called, each on the thread of its own loop. What arrives several
/// times before the callback has run is one call, as with pending signals (signal(7)).
///
/// The first watcher of a signal in the process installs a handler (sigaction(2); SA_RESTART,
/// SA_ONSTACK, a full mask) and the last one restores the former disposition, unless other code has
/// replaced the handler meanwhile. The kernel runs the handler on any thread that does not block
/// the signal; it takes no lock, allocates nothing and preserves errno. No signal mask changes: a
/// signal that all threads block stays pending until one does not, and one sent to a single thread
/// (pthread_kill(3)) has to be let through by that thread. Watching SIGSEGV, SIGBUS, SIGFPE or
/// SIGILL makes sense only where another process sends them: after a fault, the faulting
/// instruction is repeated for ever.
///
/// After fork(2), signals of the child are kept for its loops until they are reopened
/// (EventLoop::reopen_after_fork), and do not wake the parent's. execve(2) puts back the default
/// action of watched signals.
///
/// Owns its callback. A started one keeps the loop running. Moves and is destroyed freely, inside
/// its own callback too, and falls silent at once. Belongs to the thread of its loop, which it may
/// outlive, silently.
class Signal final : private Ready, private Listed<Signal> {
 public:
  using Function = Callback<void(int)>;  ///< Is given the signal's number.

  Signal(EventLoop& loop, int number, Function function,
         std::source_location created_at = std::source_location::current()) noexcept;
  Signal(Signal&& other) noexcept;
  Signal& operator=(Signal&& other) noexcept;
  ~Signal();

  /// EINVAL: no such signal, one that cannot be caught (SIGKILL, SIGSTOP), or one that the C
  /// library keeps for itself. EMFILE, ENFILE, ENOMEM: the loop's first signal needs an eventfd(2).
  /// ERANGE: a select loop could not watch that. No effect on a started one.
  Result<> start() noexcept;

  /// A callback that was due does not come.
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return listed(); }
  [[nodiscard]] int number() const noexcept { return number_; }

  using Ready::priority;
  using Ready::set_priority;

  /// Replaces what is called; allowed inside the callback.
  void set_function(Function function) noexcept;

  /// As if the process had been sent the signal, for all loops. Any thread; async-signal-safe, for
  /// programs that keep a handler of their own. Numbers that nobody watches are ignored.
  static void feed(int number) noexcept;

  /// The same for the watchers of one loop, on its thread; inside callbacks for the next turn.
  static void feed(EventLoop& loop, int number) noexcept;

 private:
  friend class loop::Children;
  friend class loop::Signals;
  friend class Listed<Signal>;  // The loop's list of the watchers of this signal.
  Signal(loop::Core& core, int number, Function function) noexcept;
  static void run(Ready& ready);

  int number_;
  loop::Core* core_;
  Function function_;
};

}  // namespace tambour
