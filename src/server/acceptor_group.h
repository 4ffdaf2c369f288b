// The acceptors of a server over a group of loops, and what they share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/loop/async.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/listen_options.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>
#include <tambour/threads/loop_group.h>

#include "base/process_number.h"
#include "server/error_reporting.h"
#include "server/listener.h"
#include "server/placement_policy.h"

namespace tambour::detail::server {

class Acceptor;

/// The listeners of a server that is opened: the given listeners are distributed over the loops,
/// and a loop that receives none opens one.
struct ListenerSource {
  Endpoint at;
  std::vector<UniqueFd> listeners{};
  bool (*supports)(const Endpoint&) = nullptr;
};

/// Thread: callable from any thread, except where noted. An Acceptor belongs to its loop's thread.
/// Lifetime: shared by the server, its acceptors and the sockets on their way between loops.
class AcceptorGroup final : public std::enable_shared_from_this<AcceptorGroup> {
 public:
  AcceptorGroup(LoopGroup& group, const ListenOptions& options);

  /// Opens the acceptor of `loop`. Called on the thread of that loop, for one loop after another.
  Result<> open_acceptor(EventLoop& loop, ListenerSource& source);

  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const std::shared_ptr<const ListenOptions>& options() const noexcept {
    return options_;
  }
  [[nodiscard]] const std::shared_ptr<ErrorReporter>& reporter() const noexcept {
    return reporter_;
  }
  [[nodiscard]] PlacementPolicy& placement() noexcept { return placement_; }
  /// Null if the loop has none: it is not of this group, or the server has been destroyed.
  [[nodiscard]] Acceptor* acceptor_on(const EventLoop& loop) const noexcept;
  /// Both call `function` for each acceptor, on the thread of its loop. post_to_acceptors() returns
  /// at once; for_each_acceptor() waits until all calls have returned, and returns false if the
  /// group has been stopped.
  void post_to_acceptors(Callback<void(Acceptor&)> function);
  bool for_each_acceptor(Callback<void(Acceptor&)> function);

  /// The number of connections that are counted, and of those ever accepted.
  [[nodiscard]] std::size_t connections() const noexcept { return connections_; }
  [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }
  void count_accepted() noexcept { ++accepted_; }
  void count_in(const EventLoop& loop) noexcept;
  void count_out(const EventLoop& loop) noexcept;
  void move_count(const EventLoop& from, const EventLoop& to) noexcept;

  [[nodiscard]] std::size_t connections_max() const noexcept { return connections_max_; }
  /// The limit of the acceptor of `loop` alone: its share if each loop listens.
  [[nodiscard]] std::size_t connections_max_on(const EventLoop& loop) const noexcept;
  /// Returns whether all acceptors together have reached their limit. The acceptor of `loop` is
  /// then notified when capacity is available.
  [[nodiscard]] bool is_full(EventLoop& loop) noexcept;

  /// One for each loop, so that the callbacks of its tokens run on the thread of the loop.
  [[nodiscard]] const std::stop_source& shutdown_source_on(const EventLoop& loop) const noexcept;

  void add_listener(int descriptor);
  void close_listeners(std::vector<Listener>& listeners) noexcept;
  /// Returns duplicates of the listeners of all acceptors. Fails with ECANCELED in a child after
  /// fork(2).
  [[nodiscard]] Result<std::vector<UniqueFd>> copy_listeners();
  void keep_path() noexcept { keeps_path_ = true; }

  /// Called by an acceptor before it accepts, and after its last accepted socket is counted.
  void begin_listening() noexcept { ++listening_; }
  void end_listening() noexcept;
  void acceptor_destroyed(const Acceptor& acceptor) noexcept;
  /// Waits until all acceptors have been destroyed, but not in a child after fork(2), in which they
  /// are kept.
  void wait_for_destruction() noexcept;
  /// Has no effect in a child after fork(2).
  static Task<> shut_down(std::shared_ptr<AcceptorGroup> self, Duration grace);

  void begin_serving() noexcept;
  /// Aborts with a message if the LoopGroup has been destroyed. `function` is the member function
  /// that the program called, null for the destructor.
  void check_group(const char* function) const noexcept;

 private:
  struct ShutdownWaiter;

  [[noreturn]] void misused(const char* function, const char* mode, const char* fix) const noexcept;
  Result<> open_listeners(Acceptor& acceptor, std::size_t index, ListenerSource& source);
  Result<> steer_by_processor(const Acceptor& acceptor);
  [[nodiscard]] bool has_ended() const noexcept { return listening_ == 0 && connections_ == 0; }
  void notify_waiters() noexcept;

  LoopGroup& group_;
  const std::weak_ptr<const void> group_exists_;
  const std::shared_ptr<const ListenOptions> options_;
  const std::shared_ptr<ErrorReporter> reporter_;
  const std::size_t connections_max_;
  PlacementPolicy placement_;
  Endpoint endpoint_;
  std::atomic<bool> serves_{false};
  std::vector<std::atomic<Acceptor*>> acceptors_;  ///< One for each loop.
  std::vector<std::stop_source> shutdown_sources_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::uint64_t> accepted_{0};
  /// The number of acceptors that listen, or that may still hold an accepted socket.
  std::atomic<std::size_t> listening_{0};
  /// The accepting loop, while it waits at connections_max for a connection to end.
  std::atomic<EventLoop*> waits_for_capacity_{nullptr};
  /// Read by each acceptor when it stops, so that keep_path() need not post to them.
  std::atomic<bool> keeps_path_{false};
  std::vector<int> processors_;  ///< The CPU of each loop, for steering.

  const base::OwningProcess process_;
  std::mutex mutex_;
  std::condition_variable destroyed_;
  std::size_t acceptors_alive_ = 0;
  /// The listeners of all acceptors, in the order in which they were opened.
  std::vector<int> listeners_;
  detail::IntrusiveList<ShutdownWaiter> waiters_;
};

}  // namespace tambour::detail::server
