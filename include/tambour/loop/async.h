// Wakes a loop from other threads and from signal handlers, and invokes a callback there: libev's
// ev_async.
#pragma once

#include <atomic>
#include <source_location>

#include <tambour/base/callback.h>
#include <tambour/detail/handle.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// Invokes its callback on the loop's thread after send(), which any thread may call. All sends
/// since the last callback are coalesced into one callback. To run a function on the loop's thread,
/// use EventLoop::post().
///
/// Lifetime: cannot be moved, because senders refer to it by address. All senders must have stopped
/// using it before it is destroyed.
/// Thread: all functions except send() must be called on the loop's thread.
/// Loop: a started Async keeps the loop running.
class Async final : private detail::Handle<Async, Callback<void()>> {
 public:
  /// The callback.
  using Function = Callback<void()>;

  /// The Async is not started.
  Async(EventLoop& loop, Function function,
        std::source_location created_at = std::source_location::current()) noexcept;
  Async(const Async&) = delete;
  Async& operator=(const Async&) = delete;
  ~Async();

  /// Invokes the callback for each send, several of which may be combined, from now on.
  void start() noexcept;
  /// A pending callback is not invoked while the Async is stopped. No send is lost: sends before
  /// and after stop() take effect at the next start(), because a sender cannot know whether the
  /// Async is started.
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return listed(); }

  /// Callable from any thread and from signal handlers: async-signal-safe, takes no lock and
  /// allocates nothing. If the Async is stopped, the send takes effect at the next start(). Must
  /// not be called after the loop was destroyed.
  void send() noexcept;

  /// True after send() until the callback is invoked.
  [[nodiscard]] bool is_sent() const noexcept { return sent_.load(std::memory_order_acquire); }

  /// From -2, invoked last, to 2, among the callbacks that are due in an iteration; default: 0.
  /// Other values are clamped.
  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class detail::loop::Core;
  static void run(ReadyNode& ready);

  std::atomic<bool> sent_{false};
};

}  // namespace tambour

#pragma GCC visibility pop
