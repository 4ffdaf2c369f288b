// The event loop: waits for what was asked of it, and calls back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/events.h>
#include <tambour/loop_stats.h>
#include <tambour/result.h>

namespace tambour {

class SimulatedHost;
class TaskScope;
class EventLoop;
namespace loop {
class Core;
Core& core_of(EventLoop& loop) noexcept;
}  // namespace loop

/// How the loop learns from the kernel what has happened.
enum class BackendKind : std::uint8_t {
  automatic,  ///< TAMBOUR_BACKEND where set, else what measured fastest: see docs/backends.md.
  epoll,      ///< epoll(7).
  io_uring,   ///< io_uring(7); falls back to epoll where the kernel or a sandbox forbids it.
  poll,       ///< poll(2).
  select,     ///< select(2): descriptors below FD_SETSIZE only.
  simulated,  ///< Virtual time and descriptors: <tambour/simulation.h>. Needs a simulated_host.
};

struct LoopOptions {
  BackendKind backend = BackendKind::automatic;

  /// How long the loop may poll without sleeping when events have lately come at least that fast.
  /// Saves the kernel's wake-up (a few to tens of microseconds an event) for a processor at full
  /// use meanwhile. Zero, the default: never.
  Duration spin{0};

  /// How late the kernel may end a wait, so that it wakes up for several at a time: the timer slack
  /// of the loop's thread (PR_SET_TIMERSLACK, prctl(2)), set when the loop is made. Zero, the
  /// default, leaves it as it is, mostly 50 µs. Waits in epoll, poll and select may always be late
  /// by a thousandth of their length.
  Duration timer_slack{0};

  /// Whether stats() knows times: two more readings of the clock in each turn.
  bool measure_times = false;

  /// io_uring: entries of the submission and completion queues; rounded up to powers of two.
  /// Small ones only cost system calls: nothing is lost.
  unsigned submission_entries = 256;
  unsigned completion_entries = 4096;

  /// The machine of a Simulation that the loop runs on, with `automatic` or `simulated`; see
  /// SimulatedHost::loop_options(). Null: on this one.
  SimulatedHost* simulated_host = nullptr;
};

/// What the loop runs on.
struct BackendTraits {
  BackendKind kind;
  std::string_view name;       ///< "epoll", "io_uring", "poll", "select" or "sim".
  bool edges;                  ///< Trigger::edge reports less than Trigger::level.
  bool closed;                 ///< Events::closed is reported.
  std::string_view features;   ///< Of the kernel, as probed: "SINGLE_ISSUER DEFER_TASKRUN", say.
  std::string_view fell_back;  ///< Why the backend that was asked for is not the one; else empty.
};

/// Runs the callbacks of its watchers and timers on one thread.
///
/// Belongs to the thread that made it; every function but post() and wake() is to be called there,
/// which is checked, always: a breach aborts with a message. Several loops in one thread are fine.
/// It cannot move. Watchers do not keep it alive; they may be destroyed after it, silently.
class EventLoop {
 public:
  /// Throws std::system_error where the kernel refuses what a loop needs (EMFILE, ENOMEM), and
  /// EINVAL if TAMBOUR_BACKEND names no backend; what() then has its value and the accepted ones.
  /// `created_at` is named by the messages of checks.
  explicit EventLoop(const LoopOptions& options = {},
                     std::source_location created_at = std::source_location::current());

  /// The same for programs without exceptions.
  static Result<std::unique_ptr<EventLoop>> open(
      const LoopOptions& options = {},
      std::source_location created_at = std::source_location::current());

  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  /// Runs until stop(), or until nothing is left to wait for: no started watcher or timer, no
  /// posted task, no reference (see ref). An exception that leaves a callback leaves run(); the
  /// loop stays whole, and running it again goes on with what was due. May be called inside a
  /// callback; it then also runs what the outer call had still to run.
  void run();

  /// Waits until something is due, runs what is, once, and returns; at once where nothing is left.
  void run_once();

  /// Runs what is due without waiting. Leaves a stop() for the next run().
  void run_ready();

  /// Makes run() and run_once() return when the callbacks of this turn are done; called while the
  /// loop is not running, it makes the next run() return at once. Where an exception leaves run()
  /// instead, that was its end.
  void stop() noexcept;

  /// The time at which the current turn began to call back. Cheap: reads no clock.
  [[nodiscard]] TimePoint now() const noexcept;

  /// Reads the clock into now(); for callbacks that take long before they use it.
  void update_now() noexcept;

  /// Runs `task` on the loop's thread, in the order of posting; callable from any thread, and
  /// inside callbacks for the next turn. Throws std::bad_alloc only, also where eight million wait.
  /// Tasks that are left when the loop is destroyed are destroyed without being run.
  void post(Callback<void()> task);

  /// Interrupts the wait, from any thread; async-signal-safe.
  void wake() noexcept;

  /// A reference keeps run() going without a watcher, as a worker that only takes posts needs;
  /// unref() takes it back, also one that a started watcher holds.
  void ref() noexcept;
  void unref() noexcept;

  /// How many callbacks are due and have not been run.
  [[nodiscard]] std::size_t pending_count() const noexcept;

  /// Calls `runner` in each turn in place of running what is due, so that a lock can be taken
  /// around it, say; it calls run_pending(). An empty one puts things back.
  void set_pending_runner(Callback<void()> runner) noexcept;

  /// Runs what is due, now; also from inside a callback.
  void run_pending();

  /// Makes the loop wait at least `io` between two looks at the descriptors, and lets timers be up
  /// to `timeout` late, so that more is done in each turn: fewer turns for a longer delay.
  void set_collect_intervals(Duration io, Duration timeout) noexcept;

  /// Between suspend() and resume() no time passes for timers, as when a program was stopped with
  /// SIGSTOP, or a laptop asleep. No turns may be run meanwhile. A second suspend(), and a resume()
  /// that none came before, do nothing.
  void suspend() noexcept;
  void resume() noexcept;

  [[nodiscard]] LoopStats stats() const noexcept;

  /// Calls `report` after each callback that took longer than `threshold`, with the place in the
  /// program where its handle was made. Costs two readings of the clock for each callback; an empty
  /// one turns it off.
  void set_stall_detector(Duration threshold, Callback<void(const Stall&)> report) noexcept;

  /// Makes the watchers of a descriptor see `events` as if the kernel had reported them.
  void feed_fd(int fd, Events events) noexcept;

  /// In the child after fork(2), before anything else is done with the loop: gives it kernel
  /// objects of its own, with all watchers and timers as they were. The parent is untouched.
  Result<> reopen_after_fork() noexcept;

  [[nodiscard]] const BackendTraits& backend() const noexcept;

  /// The tasks that were spawned on the loop itself; see spawn() in <tambour/task_scope.h>. Throws
  /// std::bad_alloc, the first time.
  [[nodiscard]] TaskScope& tasks();

 private:
  friend class Async;
  friend class Child;
  friend class EmbeddedLoop;
  friend class FdWatcher;
  friend class FileStatus;
  friend class Hook;
  friend class Signal;
  friend class Timer;
  friend class WallTimer;
  friend loop::Core& loop::core_of(EventLoop& loop) noexcept;

  loop::Core* core_;  ///< Shared with the handles, which may live longer.
};

}  // namespace tambour
