// The implementation of a server over a group of loops: the part on each loop, and the shared
// state.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <tambour/async.h>
#include <tambour/event_loop.h>
#include <tambour/server_group.h>
#include <tambour/task_scope.h>
#include <tambour/unique_fd.h>

#include "loop/core.h"
#include "net/connection_owner.h"
#include "server/accepting.h"

namespace tambour {
namespace net {

constexpr bool each_loop_listens(Placement placement) noexcept {
  return placement == Placement::kernel || placement == Placement::processor;
}

/// The listener of one loop.
class GroupListener final : public StreamServerBase {
 public:
  explicit GroupListener(StreamServerBase&& base) noexcept : StreamServerBase(std::move(base)) {}
  using StreamServerBase::accept_socket;
  using StreamServerBase::open;
};

/// A task that waits in shut_down() for all loops. Waking it allocates no memory.
struct GroupWaiter : detail::ListHook<GroupWaiter> {
  explicit GroupWaiter(EventLoop& loop) : event(loop), bell(loop, [this] { event.set(); }) {
    bell.start();
  }
  TaskEvent event;
  Async bell;
};

}  // namespace net

/// The listeners of a server: the given listeners are distributed over the loops, and a loop that
/// receives none opens one.
struct ServerGroupBase::Source {
  Endpoint at;
  std::vector<UniqueFd> listeners{};
  bool (*supports)(const Endpoint&) = nullptr;
};

/// State that the parts on all loops share. Thread: callable from any thread, except for functions
/// that access a Part, which belongs to its loop's thread.
class ServerGroupBase::Shared : public std::enable_shared_from_this<Shared> {
 public:
  Shared(LoopGroup& its_group, std::weak_ptr<const void> token, const GroupListenOptions& given)
      : group(its_group), group_exists(std::move(token)), options(given), parts(its_group.size()) {}

  [[nodiscard]] Part* part_on(const EventLoop& loop) const noexcept {
    const std::size_t index = group.index_of(loop);
    return index < parts.size() ? parts[index].load() : nullptr;
  }
  /// Both call `function` for each part, on the thread of its loop. post_to_parts() returns at
  /// once; for_each_part() waits until all calls have returned.
  void post_to_parts(const std::function<void(Part&)>& function);
  bool for_each_part(const std::function<void(Part&)>& function);

  void count_in(const EventLoop& loop) noexcept {
    group.add_load(loop);
    total.fetch_add(1);
  }
  void count_out(const EventLoop& loop) noexcept;
  [[nodiscard]] bool is_over() const noexcept { return listening == 0 && total == 0; }
  /// Aborts with a message if the group has been destroyed. `function` is the member function that
  /// the program called, null for the destructor.
  void check_group(const char* function) const noexcept;
  void begin_serving() noexcept {
    if (serves.exchange(true)) [[unlikely]]
      misused("serve", "twice", "create one server for each handler or set of callbacks");
  }
  [[noreturn]] void misused(const char* function, const char* how, const char* fix) const noexcept;
  void notify_waiters() noexcept;
  void part_destroyed() noexcept;
  void wait_for_end() noexcept;
  /// Called on the thread of that loop, for one loop after another.
  Result<> open_part(EventLoop& loop, Source& source);
  /// Returns duplicates of the listeners of all parts.
  [[nodiscard]] Result<std::vector<UniqueFd>> copy_listeners();
  static Task<> shut_down(std::shared_ptr<Shared> self, Duration grace);

  LoopGroup& group;
  const std::weak_ptr<const void> group_exists;
  std::atomic<bool> serves{false};
  const GroupListenOptions options;
  Endpoint endpoint;
  std::vector<std::atomic<Part*>> parts;
  std::atomic<std::size_t> total{0};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::size_t> listening{0};
  /// The accepting loop, while it waits at connections_max for a connection to end.
  std::atomic<EventLoop*> waits_for_room{nullptr};
  /// Read by each part when it stops, so that keep_path() need not post to the parts.
  std::atomic<bool> keeps_path{false};
  std::vector<int> processors;  ///< The CPU of each loop, for steering.

  std::mutex mutex;
  std::condition_variable changed;
  std::size_t parts_alive = 0;
  /// The listeners of all parts, in the order in which they were opened.
  std::vector<int> listeners;
  detail::IntrusiveList<net::GroupWaiter> waiters;
};

/// The part of a server on one loop. Owned by that loop.
class ServerGroupBase::Part final : public detail::LoopOwned, public ConnectionOwner {
 public:
  Part(std::shared_ptr<Shared> shared, EventLoop& loop)
      : shared_(std::move(shared)), loop_(loop), room_(loop), handlers_(std::in_place, loop) {
    net::report_exceptions(*handlers_, loop_);
    handlers_->set_ended_handler([this] { connection_removed(); });
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() override;

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  Result<> listen(const Endpoint& at);
  Result<> adopt(UniqueFd listener, bool (*supports)(const Endpoint&));
  /// The first listener. Each part that listens has one.
  [[nodiscard]] const net::GroupListener& listener() const noexcept { return listeners_.front(); }
  [[nodiscard]] bool listens() const noexcept { return listening_; }
  /// Returns whether the task with this context is one of the handlers here.
  [[nodiscard]] bool runs(const TaskContext& context) const noexcept {
    return handlers_ && handlers_->runs(context);
  }

  void prepare(const std::function<Task<>(Socket)>& handler);
  void prepare(std::shared_ptr<const ConnectionCallbacks> callbacks);
  void accept();
  void stop() noexcept;
  /// Requests a stop of all handlers and closes all connections.
  void expire_grace() noexcept {
    if (handlers_) handlers_->request_stop();
    close_all();
  }
  /// Destroys all handlers and connections without callbacks. Connections that arrive later are
  /// closed.
  void drop() noexcept;
  /// The socket has been counted already.
  void take(Socket socket);
  void make_room() noexcept { room_.set(); }

 private:
  struct HandedOver;

  void connection_removed() noexcept override {
    shared_->count_out(loop_);
    room_.set();
  }
  ConnectionOwner* on(EventLoop& loop) noexcept override;
  void move_failed() noexcept override { shared_->count_out(loop_); }
  [[nodiscard]] std::size_t served() const noexcept {
    return size() + (handlers_ ? handlers_->size() : 0);
  }
  Result<> add(Result<StreamServerBase> opened);
  void take_accepted(Socket socket) noexcept;
  [[nodiscard]] bool is_full() noexcept;
  [[nodiscard]] EventLoop& choose(const Socket& socket) noexcept;
  void hand_over(Socket socket, EventLoop& to) noexcept;

  std::shared_ptr<Shared> shared_;
  EventLoop& loop_;
  std::vector<net::GroupListener> listeners_;
  bool listening_ = false;
  std::size_t next_index_ = 0;
  std::function<Task<>(Socket)> handler_;
  std::function<void(Socket)> start_;
  net::Room room_;
  std::optional<TaskScope> handlers_;
  std::optional<TaskScope> accepting_;
};

}  // namespace tambour
