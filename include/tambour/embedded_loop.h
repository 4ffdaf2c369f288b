// A loop that runs inside another: libev's ev_embed.
#pragma once

#include <cstdint>
#include <source_location>

#include <tambour/callback.h>
#include <tambour/operation.h>
#include <tambour/result.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
class EmbeddedLoops;
}  // namespace loop

/// Lets one loop, the outer, do the waiting of another, the inner, in the same thread: whenever the
/// inner one has something to do, be it descriptors, timers, idle hooks or what other threads post,
/// it runs (EventLoop::run_ready). So a library with a loop of its own, on the backend it likes,
/// lives in a program that has another. `priority()` is that of all of the inner loop's callbacks
/// among the outer's.
///
/// The inner loop needs a backend with a descriptor of its own: epoll or io_uring (whose ring is
/// made anew at start, without deferred work, which cannot wake another loop). It can be run by
/// itself too, between turns of the outer one. Each loop is reopened after fork(2) by itself, the
/// order being all the same.
///
/// A started one keeps the outer loop running, whatever the inner one has to do; the inner one's
/// stop() is for its own next run(). Moves and is destroyed freely, inside callbacks of either loop
/// too. Belongs to the thread of both, either of which it may outlive, silently.
class EmbeddedLoop final : private Operation, private Listed<EmbeddedLoop> {
 public:
  using Function = Callback<void()>;

  EmbeddedLoop(EventLoop& outer, EventLoop& inner,
               std::source_location created_at = std::source_location::current()) noexcept;
  /// `function` is called in place of running the inner loop, for which it calls run_inner().
  EmbeddedLoop(EventLoop& outer, EventLoop& inner, Function function,
               std::source_location created_at = std::source_location::current()) noexcept;
  EmbeddedLoop(EmbeddedLoop&& other) noexcept;
  EmbeddedLoop& operator=(EmbeddedLoop&& other) noexcept;
  ~EmbeddedLoop();

  /// True where the inner loop's backend can be embedded.
  static bool possible(const EventLoop& inner) noexcept;

  /// EOPNOTSUPP: the inner backend has no descriptor (poll, select), or a loop is simulated. ELOOP:
  /// a loop would be inside itself. EBUSY: the inner one is embedded already. ENOMEM. No effect on
  /// a started one.
  Result<> start() noexcept;

  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return listed(); }

  /// One turn of the inner loop, without waiting. No effect where that loop has been destroyed.
  void run_inner();

  using Ready::priority;
  using Ready::set_priority;

 private:
  friend class loop::EmbeddedLoops;
  friend class Listed<EmbeddedLoop>;  // The outer loop's list of what is embedded in it.
  static void run(Ready& ready);

  loop::Core* outer_;
  loop::Core* inner_;
  std::int64_t due_ns_ = 0;  ///< When the inner loop has something to do, by the outer's clock.
  Function function_;
};

}  // namespace tambour
