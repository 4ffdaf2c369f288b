// The event loop: waits for file descriptors, timers and posted tasks, and invokes their callbacks.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/loop/options.h>  // IWYU pragma: export
#include <tambour/loop/stats.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
namespace detail::loop {
Core& core_of(EventLoop& loop) noexcept;
}  // namespace detail::loop

/// Invokes the callbacks of its watchers and timers on one thread.
///
/// Thread: a loop belongs to the thread that created it. All functions except post(), wake()
/// and stop() must be called on that thread. This is always checked: a violation aborts with a
/// message. One thread may have several loops. Lifetime: a loop cannot be moved. A watcher or timer
/// does not keep its loop alive and may be destroyed after it.
class EventLoop {
 public:
  /// Throws std::system_error if the kernel refuses a resource that the loop needs (EMFILE,
  /// ENOMEM). Throws it with EINVAL if TAMBOUR_BACKEND names no backend; what() then contains the
  /// value and the accepted values. `created_at` appears in the messages of failed checks.
  explicit EventLoop(const LoopOptions& options = {},
                     std::source_location created_at = std::source_location::current());

  /// Makes a loop. Returns the error that the constructor would throw.
  [[nodiscard]] static Result<std::unique_ptr<EventLoop>> open(
      const LoopOptions& options = {},
      std::source_location created_at = std::source_location::current());

  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  /// Runs until stop() is called or nothing is left to wait for: no started watcher or timer, no
  /// posted task and no reference (see ref()). An exception thrown by a callback propagates out of
  /// run(). The loop stays valid, and calling run() again runs the callbacks that were still due.
  /// May be called inside a callback; it then also runs the callbacks that the outer call had not
  /// run yet.
  void run();

  /// Waits until at least one callback is due, runs all due callbacks once, and returns. Returns at
  /// once if nothing is left to wait for.
  void run_once();

  /// Runs all due callbacks without waiting. Does not consume a stop() request, which stays in
  /// effect for the next run().
  void run_ready();

  /// fd(), next_deadline() and run_ready() run this loop inside the loop of another library, the
  /// host, on one thread. Before the host waits, call next_deadline(). The host then waits until
  /// that time, or until fd() is readable, or for events of its own; then call run_ready(), which
  /// may be called too often.
  ///
  /// If the host's own callbacks start timers or watchers of this loop, or tasks that do so, they
  /// change what the host must wait for. A host that offers no hook before its wait calls
  /// next_deadline() after each such callback, or makes these calls inside a task that it gives to
  /// post(): after next_deadline(), post() and wake() make fd() readable.
  ///
  /// fd() returns a descriptor that is readable while the loop has events. It belongs to the loop
  /// and stays the same until the loop is destroyed or after_fork() is called: call fd() again
  /// after that. The program must not read from it. Do not watch it edge-triggered. Fails with
  /// EOPNOTSUPP in a simulation, and with EMFILE, ENFILE or ENOMEM.
  [[nodiscard]] Result<int> fd() noexcept;

  /// The time of the next timer; one that has passed if a callback is due already; `never` if only
  /// events of fd() make a callback due.
  [[nodiscard]] TimePoint next_deadline() noexcept;

  /// Makes run() and run_once() return after the callbacks of the current iteration. If the loop is
  /// not running, the next run() returns at once. If an exception propagates out of run(), it also
  /// consumes a pending stop request. Callable from any thread, which must ensure that the loop
  /// still exists: a waiting loop is woken.
  void stop() noexcept;

  /// The time at which the current iteration started to invoke callbacks. Does not read the clock.
  [[nodiscard]] TimePoint now() const noexcept;

  /// Reads the clock and updates now(). Call it in a callback that computes for a long time before
  /// it uses now().
  void update_now() noexcept;

  /// Runs `task` on the loop's thread, in the order of posting. Callable from any thread. A task
  /// that is posted inside a callback runs in the next iteration. Throws std::bad_alloc on out
  /// of memory, and std::system_error with EAGAIN if eight million tasks are queued. Destroying the
  /// loop destroys the remaining tasks without running them. The stall detector names `at`.
  void post(Callback<void()> task, std::source_location at = std::source_location::current());

  /// Wakes the loop if it is waiting. Callable from any thread; async-signal-safe.
  void wake() noexcept;

  /// ref() adds a reference, which keeps run() from returning without a started watcher: for
  /// example in a loop that only receives posted tasks. unref() removes a reference, which may also
  /// be the one that a started watcher holds.
  void ref() noexcept;
  void unref() noexcept;

  /// Counts since the loop was made, and gauges of the present moment.
  [[nodiscard]] LoopStats stats() const noexcept;

  /// Invokes `report` after each callback that ran longer than `threshold`, with the source
  /// location where its watcher, timer or hook was created. Costs two clock readings per callback.
  /// An empty `report` disables the detector.
  void set_stall_detector(Duration threshold, Callback<void(const Stall&)> report) noexcept;

  /// Recreates the kernel objects of the loop; all watchers and timers keep their state. Call it in
  /// the child process after fork(2), before any other use of the loop. The parent's loop is not
  /// affected. The child may have closed all inherited file descriptors, as daemons do, and opened
  /// other files: they stay open, and several loops may be reopened in any order. Before Linux 5.2,
  /// or without /proc, the child must then reopen its loops before it opens any eventfd(2).
  [[nodiscard]] Result<> after_fork() noexcept;

  /// The backend that was chosen, and what it can do.
  [[nodiscard]] const BackendTraits& backend() const noexcept;

 private:
  friend detail::loop::Core& detail::loop::core_of(EventLoop& loop) noexcept;

  detail::loop::Core* core_;  ///< Shared with watchers and timers, which may outlive the loop.
};

}  // namespace tambour

#pragma GCC visibility pop
