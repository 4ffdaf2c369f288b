// Several event loops, each on a thread of its own: one for each processor, as servers want them.
//
// What belongs to a loop stays on its thread, so that nothing needs a lock; what goes from one loop
// to another is posted. The trap: a callback that blocks one loop of a group blocks every
// connection of that loop, while the others look well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <tambour/event_loop.h>
#include <tambour/result.h>

namespace tambour {

struct LoopGroupOptions {
  /// 0: as many as the process may use processors (sched_getaffinity(2)).
  std::size_t threads = 0;

  /// Keeps thread i on the i-th of those processors, and on the first again after the last.
  bool pin = false;

  /// Of each loop; not simulated ones, which have one thread. EINVAL.
  LoopOptions loop{};

  /// Threads are named by it and their index, "tambour/3", as ps(1) and debuggers show them: at
  /// most 15 bytes, and it is the name that is cut.
  std::string name = "tambour";
};

/// Runs its loops from the constructor until stop(). Its functions may be called from any thread,
/// but for join() and the destructor, which wait for the threads: from one outside the group.
///
///   LoopGroup group({.threads = 4});
///   group.next().post([] { ... });
///
/// An exception that leaves a callback stops the whole group, and join() throws it. Where nobody
/// joins, the destructor ends the program with it, as it would have ended that of a bare thread.
class LoopGroup {
 public:
  /// All loops run when it returns. Throws std::system_error: EAGAIN where there can be no further
  /// thread, and what EventLoop throws.
  explicit LoopGroup(const LoopGroupOptions& options = {});

  /// The same for programs without exceptions.
  static Result<std::unique_ptr<LoopGroup>> open(const LoopGroupOptions& options = {});

  LoopGroup(const LoopGroup&) = delete;
  LoopGroup& operator=(const LoopGroup&) = delete;
  /// stop() and join().
  ~LoopGroup();

  [[nodiscard]] std::size_t size() const noexcept;

  /// For posting, and for objects that are made on the loop's own thread. The loops are destroyed
  /// by join(): this function, next(), by_hash() and least_loaded() abort afterwards.
  [[nodiscard]] EventLoop& operator[](std::size_t index) const noexcept;

  /// The loops in turn.
  [[nodiscard]] EventLoop& next() noexcept;

  /// Always the same one for the same value. Values need not be spread well: they are mixed.
  [[nodiscard]] EventLoop& by_hash(std::uint64_t hash) const noexcept;

  /// The one with the least load; the first of several.
  [[nodiscard]] EventLoop& least_loaded() const noexcept;

  /// What least_loaded() compares: connections, say, each counted when its loop is chosen, and
  /// taken back when it is closed. A TcpServerGroup counts its own.
  void add_load(const EventLoop& loop, std::ptrdiff_t by = 1) noexcept;
  [[nodiscard]] std::size_t load(const EventLoop& loop) const noexcept;

  /// size() where the loop is another's.
  [[nodiscard]] std::size_t index_of(const EventLoop& loop) const noexcept;

  /// Whether the calling thread is one of the group's.
  [[nodiscard]] bool in_thread() const noexcept;

  /// Calls `function` on each loop's thread, some time. It is called by all of them at once. Throws
  /// std::bad_alloc; some have been posted to, then.
  void post_to_all(const std::function<void(EventLoop&)>& function);

  /// The same, and waits until all have: not from a thread of the group, which would wait for
  /// itself. Throws the first exception that leaves `function`. False: the group has been stopped,
  /// and some have not called it and never will.
  bool for_each(const std::function<void(EventLoop&)>& function);

  /// Makes all loops return from run(), after which each destroys the tasks and connections that it
  /// owns, and what was posted and not run. Returns at once; async-signal-safe. What one loop's
  /// callback does by EventLoop::stop() ends the whole group too.
  void stop() noexcept;

  /// Waits for stop() and the end of the threads, and destroys the loops. Throws what left a
  /// callback.
  void join();

 private:
  friend class ServerGroupBase;
  class State;
  /// Shared only so that servers can tell, by a std::weak_ptr, that the group was destroyed.
  std::shared_ptr<State> state_;
};

}  // namespace tambour
