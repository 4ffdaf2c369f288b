// A group of event loops, each with its own thread: usually one per processor.
//
// Objects of a loop stay on its thread, so they need no locks; work for another loop is posted to
// it. A callback that blocks stalls all connections of its loop, while the other loops keep
// running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/loop/event_loop.h>

namespace tambour::detail::threads {
class LoopGroupState;
}  // namespace tambour::detail::threads

#pragma GCC visibility push(default)

namespace tambour {

/// The threads of a LoopGroup and their loops.
struct LoopGroupOptions {
  /// The number of threads. 0: the number of processors available to the process
  /// (sched_getaffinity(2)).
  std::size_t threads = 0;

  /// Pins thread i to the i-th of those processors, and starts again with the first after the last.
  bool pin = false;

  /// The options of each loop. Fails with EINVAL for simulated loops, which run on a single thread.
  LoopOptions loop{};

  /// The prefix of the thread names, followed by the index: "tambour/3", as shown by ps(1) and
  /// debuggers. Thread names have at most 15 bytes; the prefix is truncated to fit.
  std::string name = "tambour";
};

/// Runs its loops from the constructor until stop().
///
///   LoopGroup group({.threads = 4});
///   group.next().post([] { ... });
///
/// Thread: all functions may be called from any thread, except join() and the destructor. These
/// wait for the group's threads, so they must be called from a thread outside the group.
/// Fork: the threads do not exist in a child after fork(2). Create the group after fork(2) or
/// daemon(3). In the child, functions of a group of the parent that return a loop abort with a
/// message; the others, join() and the destructor included, have no effect.
/// Errors: an exception thrown by a callback stops the whole group, and join() rethrows it. If
/// join() is not called, the destructor terminates the program, as an exception in a std::thread
/// would.
class LoopGroup {
 public:
  /// All loops are running when the constructor returns. Throws std::system_error: EAGAIN if no
  /// further thread can be created, and what EventLoop throws. `created_at` appears in the messages
  /// of failed checks, also those of the loops.
  explicit LoopGroup(const LoopGroupOptions& options = {},
                     std::source_location created_at = std::source_location::current());

  /// Makes a group. Returns the error that the constructor would throw.
  [[nodiscard]] static Result<std::unique_ptr<LoopGroup>> open(
      const LoopGroupOptions& options = {},
      std::source_location created_at = std::source_location::current());

  LoopGroup(const LoopGroup&) = delete;
  LoopGroup& operator=(const LoopGroup&) = delete;
  /// Calls stop() and join().
  ~LoopGroup();

  [[nodiscard]] std::size_t size() const noexcept;

  /// Returns a loop, to post to it or to construct objects on its thread. join() destroys the
  /// loops: afterwards this function, next(), by_hash() and least_loaded() abort.
  [[nodiscard]] EventLoop& operator[](std::size_t index) const noexcept;

  /// Returns the loops round-robin.
  [[nodiscard]] EventLoop& next() noexcept;

  /// Returns the same loop for the same value. Values need not be well distributed: they are mixed.
  [[nodiscard]] EventLoop& by_hash(std::uint64_t hash) const noexcept;

  /// Returns the loop with the least load; the first of several.
  [[nodiscard]] EventLoop& least_loaded() const noexcept;

  /// Adjusts the load that least_loaded() compares, for example the number of connections: add one
  /// when a loop is chosen, and subtract it when the connection is closed. A TcpServerGroup counts
  /// its own connections.
  void add_load(const EventLoop& loop, std::ptrdiff_t by = 1) noexcept;
  [[nodiscard]] std::size_t load(const EventLoop& loop) const noexcept;

  /// Returns size() if `loop` does not belong to the group.
  [[nodiscard]] std::size_t index_of(const EventLoop& loop) const noexcept;

  /// The index of the loop of the calling thread; size() if the thread does not belong to the
  /// group.
  [[nodiscard]] std::size_t index_of_this_thread() const noexcept;

  /// Expires when the group is destroyed: for objects that refer to the group and may outlive it.
  [[nodiscard]] std::weak_ptr<const void> lifetime() const noexcept;

  /// True if the calling thread belongs to the group.
  [[nodiscard]] bool in_group_thread() const noexcept;

  /// Posts `function` to each loop; the loops run it concurrently. Throws like
  /// EventLoop::post(), possibly after it has posted to some of the loops.
  void post_to_all(Callback<void(EventLoop&)> function);

  /// Posts `function` to each loop, and waits until all loops have run it. Must not be called from
  /// a thread of the group, which would wait for itself. Throws the first exception that `function`
  /// throws. Returns false if the group has been stopped, so that some loops have not run it and
  /// never will.
  bool for_each(Callback<void(EventLoop&)> function);

  /// Makes all loops return from run(). Each loop then destroys the tasks and connections that it
  /// owns, and the posted tasks that have not run. Returns at once; async-signal-safe. If a
  /// callback calls EventLoop::stop(), the whole group stops too.
  void stop() noexcept;

  /// Waits for stop() and for the threads to end, and destroys the loops. Throws the exception that
  /// a callback has thrown.
  void join();

 private:
  std::shared_ptr<detail::threads::LoopGroupState> state_;
};

}  // namespace tambour

#pragma GCC visibility pop
