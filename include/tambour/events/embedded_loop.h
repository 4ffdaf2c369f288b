// A loop that runs inside another loop: libev's ev_embed.
#pragma once

#include <cstdint>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/handle.h>
#include <tambour/detail/operation.h>

namespace tambour::detail::events {
class EmbeddedLoops;
}  // namespace tambour::detail::events
namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Makes an outer loop wait on behalf of an inner loop in the same thread: whenever the inner loop
/// has something to do (file descriptors, timers, idle hooks or posted tasks), the outer loop runs
/// it (EventLoop::run_ready). A library with its own loop and backend can thus be used in a program
/// with another loop. `priority()` applies to all of the inner loop's callbacks relative to those
/// of the outer loop.
///
/// start() recreates the ring of io_uring without IORING_SETUP_DEFER_TASKRUN, because deferred task
/// work cannot wake another loop. With poll and select, it opens an epoll set for the outer loop.
/// The inner loop may still be run directly, between iterations of the outer loop. After fork(2),
/// reopen each loop; the order does not matter.
///
/// Lifetime: may be moved or destroyed at any time, including inside callbacks of either loop, and
/// may outlive both loops.
/// Thread: both loops must belong to the thread that uses it.
/// Loop: while started, it keeps the outer loop running, even if the inner loop has nothing to do.
/// stop() of the inner loop affects only the next run() of that loop.
class EmbeddedLoop final
    : private detail::Handle<EmbeddedLoop, Callback<void()>, detail::Operation> {
 public:
  /// The callback, which runs the inner loop with run_inner().
  using Function = Callback<void()>;

  /// Runs the inner loop in the outer one whenever it has something to do. Not started.
  EmbeddedLoop(EventLoop& outer, EventLoop& inner,
               std::source_location created_at = std::source_location::current()) noexcept;
  /// Invokes `function` instead of running the inner loop; it must call run_inner().
  EmbeddedLoop(EventLoop& outer, EventLoop& inner, Function function,
               std::source_location created_at = std::source_location::current()) noexcept;
  EmbeddedLoop(EmbeddedLoop&& other) noexcept;
  EmbeddedLoop& operator=(EmbeddedLoop&& other) noexcept;
  ~EmbeddedLoop();

  /// Returns true if the inner loop can be embedded: it is not simulated.
  static bool possible(const EventLoop& inner) noexcept;

  /// Starts running the inner loop. Fails with EOPNOTSUPP if a loop is simulated, with ELOOP if a
  /// loop would contain itself, with EBUSY if the inner loop is embedded already, with ERANGE if a
  /// select loop cannot watch the inner loop's file descriptor, and with ENOMEM. No effect if
  /// started.
  [[nodiscard]] Result<> start() noexcept;

  /// The outer loop no longer runs the inner one. No effect if stopped.
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return listed(); }

  /// Runs one iteration of the inner loop without waiting. No effect if the inner loop has been
  /// destroyed.
  void run_inner();

  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. If `function` is empty, the inner loop is run instead. May be called
  /// inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class detail::events::EmbeddedLoops;
  static void run(ReadyNode& ready);

  /// Null if moved from. The outer loop is that of the callback.
  detail::loop::Core* inner_;
  /// The time at which the inner loop has something to do, on the outer loop's clock.
  std::int64_t due_ns_ = 0;
};

}  // namespace tambour

#pragma GCC visibility pop
