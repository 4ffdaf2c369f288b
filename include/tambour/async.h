// A bell that other threads, and signal handlers, ring: libev's ev_async.
#pragma once

#include <atomic>
#include <source_location>

#include <tambour/callback.h>
#include <tambour/operation.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
}

/// Calls back on the loop's thread after send() from any other. Sends that the callback has not
/// seen yet are one. For more than a bell, EventLoop::post carries a function.
///
/// Cannot move: others hold it by address, and must have let go of it before it is destroyed. All
/// but send() belongs to the thread of the loop. Started, it keeps the loop running.
class Async final : private Ready, private Listed<Async> {
 public:
  using Function = Callback<void()>;

  Async(EventLoop& loop, Function function,
        std::source_location created_at = std::source_location::current()) noexcept;
  Async(const Async&) = delete;
  Async& operator=(const Async&) = delete;
  ~Async();

  void start() noexcept;
  /// A callback that was due does not come while it is stopped. No send is lost by that: whether it
  /// was before or after stop(), which the sender cannot know, it is kept until the next start().
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return listed(); }

  /// Any thread, and signal handlers: async-signal-safe, no lock, no allocation. A send to a
  /// stopped one is kept until it is started. Not after the loop was destroyed.
  void send() noexcept;

  /// True between send() and the callback.
  [[nodiscard]] bool sent() const noexcept { return sent_.load(std::memory_order_acquire); }

  using Ready::priority;
  using Ready::set_priority;

 private:
  friend class loop::Core;
  friend class Listed<Async>;  // The loop's list of them.
  static void run(Ready& ready);

  std::atomic<bool> sent_{false};
  loop::Core* core_;
  Function function_;
};

}  // namespace tambour
