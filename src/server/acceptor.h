// Accepts the connections of a server on one loop and serves them.
//
// A server on one loop is one acceptor. A server over a group of loops has one on each loop; those
// that do not listen serve the connections that another one has accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <stop_token>
#include <utility>
#include <vector>

#include <tambour/base/unique_fd.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/connection.h>
#include <tambour/net/listen_options.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "loop/core.h"
#include "net/connection/owner.h"
#include "server/capacity_event.h"
#include "server/connection_slot.h"
#include "server/error_reporting.h"
#include "server/listener.h"
#include "task/scope_access.h"

namespace tambour::detail::server {

class AcceptorGroup;

/// Owns the listeners, handlers and connections of a server on one loop.
///
/// Path of a connection: Listener::accept(), take(), placement by the group, arrive() on the loop
/// that serves it, begin(), start(). The PROXY header is read before the placement if it decides
/// the placement, otherwise after arrive(). begin() makes the handshake of TLS, if the server uses
/// it.
///
/// Lifetime: a callback may destroy the server while the accepting task, or the task that has read
/// a PROXY header or made a handshake, is on the stack. destroy() then closes everything at once,
/// no callback is invoked after that, and the loop defers the deletion to the end of the iteration.
/// Thread: must be used on the loop's thread.
class Acceptor final : public detail::LoopOwned, public net::ConnectionOwner {
 public:
  /// `group` is null for a server on one loop.
  Acceptor(EventLoop& loop, std::shared_ptr<const ListenOptions> options,
           std::shared_ptr<AcceptorGroup> group);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  /// Called by the loop that owns the acceptor. Others call destroy().
  ~Acceptor() override;
  static void destroy(Acceptor* acceptor) noexcept;

  Result<> listen(const Endpoint& at, bool reuse_port);
  Result<> adopt(UniqueFd listener, bool (*supports)(const Endpoint&));

  /// From now on each connection that arrives is served with `handler` or `callbacks`, unless
  /// `check`, if not null, rejects it after the handshake of TLS.
  void serve(std::function<Task<>(SocketStream)> handler, const std::source_location& created_at,
             detail::HandshakeCheck check);
  void serve(std::shared_ptr<const ConnectionCallbacks> callbacks);
  [[nodiscard]] bool serves() const noexcept { return start_ != nullptr; }
  /// Starts accepting from the listeners. If there is a group, all of its acceptors must serve. The
  /// stall detector names `served_at` for the tasks that accept, which start the handlers.
  void accept(const std::source_location& served_at);
  /// Waits for one connection, for a server that does not serve.
  Task<Result<SocketStream>> accept_stream() { return listeners_.front().accept(*reporter_); }

  void keep_path() noexcept;
  /// Stops accepting and closes the listeners.
  void stop() noexcept;
  /// Calls stop(), and requests a stop of the shutdown token, whose callbacks run here.
  void begin_shutdown() noexcept;
  void log_full() const noexcept;
  /// Requests the handlers to stop, ends PROXY headers and handshakes and closes all connections.
  void expire_grace() noexcept;
  /// For a server on one loop: stops accepting and waits until everything has ended, or been ended
  /// after `grace`. Calls `misused`, which must not return, if one of its handlers awaits it.
  Task<> shut_down(Duration grace, void (*misused)(const Acceptor&));
  /// Destroys the handlers and closes all connections without invoking callbacks. Connections that
  /// arrive later are closed; the destructor calls drop() again for them.
  void drop() noexcept;

  /// Serves a stream, or another acceptor's, which has been counted for this loop.
  void arrive(SocketStream stream, ConnectionSlot slot) noexcept;
  void notify_capacity() noexcept { capacity_.set(); }

  [[nodiscard]] std::stop_token shutdown_token() const noexcept { return shutdown_.get_token(); }
  /// Throws what `function` throws.
  void for_each_connection(const Callback<void(Connection&)>& function);
  /// Reports what `function` throws.
  void for_each_connection_and_report(const Callback<void(Connection&)>& function) noexcept {
    call_and_report([&] { for_each_connection(function); });
  }

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] loop::Core& core() const noexcept { return core_; }
  [[nodiscard]] const std::shared_ptr<const ListenOptions>& options() const noexcept {
    return options_;
  }
  [[nodiscard]] const std::shared_ptr<ErrorReporter>& reporter() const noexcept {
    return reporter_;
  }
  [[nodiscard]] std::size_t connections_max() const noexcept { return connections_max_; }
  [[nodiscard]] bool listens() const noexcept { return listens_; }
  /// The first listener. Requires listen() or adopt().
  [[nodiscard]] const Listener& listener() const noexcept { return listeners_.front(); }
  /// Returns whether the task with this context is one of the handlers here.
  [[nodiscard]] bool runs(const TaskContext& context) const noexcept {
    return handlers_ && task::ScopeAccess::runs(*handlers_, context);
  }
  /// The connections of this loop, including those whose PROXY header or handshake is incomplete.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::uint64_t accepted() const noexcept;

 private:
  /// Increments `count` for its lifetime.
  class Counted {
   public:
    explicit Counted(int& count) noexcept : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }

   private:
    int& count_;
  };

  /// An unfinished handshake of TLS.
  struct Handshake;

  Result<> add(Result<Listener> listener);
  Task<> accept_all(Listener& listener);
  void take(SocketStream stream) noexcept;
  void place(SocketStream stream, ConnectionSlot slot, EventLoop& to) noexcept;
  Task<> read_header(SocketStream stream, ConnectionSlot slot, bool decides_placement);
  void begin(SocketStream stream, ConnectionSlot slot);
  Task<> shake_hands(SocketStream stream, ConnectionSlot slot);
  void start(SocketStream stream, ConnectionSlot slot);
  [[nodiscard]] bool is_full() noexcept;
  void displace_handshake() noexcept;
  /// Calls `function`; an exception ends only its connection.
  template <class Function>
  void call_and_report(Function&& function) noexcept {
    try {
      std::forward<Function>(function)();
    } catch (...) {
      report(std::current_exception());
    }
  }
  void report(std::exception_ptr thrown) noexcept;
  void report_deferred() noexcept;
  void report_listener(std::exception_ptr thrown) noexcept;
  void ended() noexcept;
  [[nodiscard]] const Endpoint& endpoint() const noexcept;
  void note_end_of_accepting() noexcept;

  void connection_removed() noexcept override {
    ++connections_removed_;
    ended();
  }
  void move_failed() noexcept override;
  net::ConnectionOwner* for_loop(EventLoop& loop) noexcept override;

  loop::Core& core_;  ///< Outlives the loop, unlike `loop_`.
  EventLoop& loop_;
  const std::shared_ptr<const ListenOptions> options_;
  const std::shared_ptr<AcceptorGroup> group_;
  const std::shared_ptr<ErrorReporter> reporter_;  ///< Of all acceptors of a group.
  std::stop_source shutdown_;
  std::vector<Listener> listeners_;
  /// The limit of this acceptor alone. A group may have another one for all of its acceptors.
  std::size_t connections_max_;
  bool listens_ = false;
  bool counts_as_listening_ = false;  ///< The group waits for this acceptor when it shuts down.
  int calls_ = 0;     ///< The callbacks that this object has invoked and that have not returned.
  int starting_ = 0;  ///< Handlers that have not reached their first suspension yet.
  bool dropped_ = false;
  std::uint64_t connections_removed_ = 0;
  /// The exceptions of handlers that have thrown before their first suspension. on_error may
  /// destroy the server, so it is invoked when no handler is starting.
  std::vector<std::exception_ptr> deferred_errors_;
  std::function<Task<>(SocketStream)> handler_;
  detail::HandshakeCheck check_ = nullptr;
  /// Starts the handler or connection. Releases the slot as soon as that is counted by itself.
  std::function<void(SocketStream, ConnectionSlot&)> start_;
  CapacityEvent capacity_;
  detail::IntrusiveList<Handshake> handshakes_;  ///< The oldest first.
  std::size_t handshakes_count_ = 0;
  std::optional<TaskScope> handlers_;  ///< Empty after drop().
  /// The tasks that read PROXY headers and make handshakes.
  std::optional<TaskScope> preparing_;
  std::optional<TaskScope> accepting_;
};

}  // namespace tambour::detail::server
