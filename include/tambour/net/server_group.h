// A server whose connections are distributed over the loops of a LoopGroup.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/net/connection.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/listen_options.h>  // IWYU pragma: export
#include <tambour/net/socket_stream.h>
#include <tambour/net/tcp_stream.h>
#include <tambour/net/unix_stream.h>
#include <tambour/task/task.h>
#include <tambour/threads/loop_group.h>

namespace tambour::detail::server {
class AcceptorGroup;
class ErrorReporter;
struct ListenerSource;
}  // namespace tambour::detail::server

#pragma GCC visibility push(default)

namespace tambour {

/// The part of a StreamServerGroup that does not depend on the type of stream; programs use
/// StreamServerGroup.
class StreamServerGroupBase {
 public:
  StreamServerGroupBase(StreamServerGroupBase&&) noexcept;
  StreamServerGroupBase& operator=(StreamServerGroupBase&&) noexcept;
  ~StreamServerGroupBase();

  /// The endpoint that the server listens on; port 0 is replaced by the port that the system chose.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;

  /// The context of ListenOptions::tls, for example to reload() it; empty without TLS. Callable
  /// from any thread.
  [[nodiscard]] const tls::ServerContext& tls() const noexcept;

  /// Returns duplicates of its listeners for a replacement process (start_new_process() calls this
  /// itself), in the order that adopt() expects; empty after stop(). Fails with EMFILE. Callable
  /// from any thread.
  [[nodiscard]] Result<std::vector<UniqueFd>> copy_listeners() const;

  /// Prevents the server from removing the Unix path when it stops, for use when another process
  /// listens on it or will do so. Callable from any thread.
  void keep_path() noexcept;

  /// Stops accepting; each loop closes its listener soon afterwards. Accepted streams stay open.
  /// Throws like EventLoop::post(). Callable from any thread.
  void stop();

  /// Graceful shutdown: stops accepting, requests a stop of the shutdown tokens, waits up to
  /// `grace` for all handlers to end, requests the remaining ones to stop, and waits for those, as
  /// StreamServer::shut_down() does. May be awaited on any loop. Aborts if a handler of this server
  /// awaits it: spawn it on a loop instead.
  Task<> shut_down(Duration grace);

  /// The token of a loop of the group, whose stop is requested when shut_down() begins: see
  /// StreamServer::shutdown_token(). Each loop has its own, so that its callbacks run on the thread
  /// of the loop: a handler passes peer.loop(). Aborts if the loop is not one of the group.
  /// Callable from any thread.
  [[nodiscard]] std::stop_token shutdown_token(const EventLoop& loop) const noexcept;

  /// The number of streams that are being served, and the total number accepted. Callable from any
  /// thread.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::uint64_t accepted() const noexcept;
  /// The number of exceptions of handlers and callbacks that have each ended their request or
  /// connection: see ListenOptions::on_error.
  [[nodiscard]] std::uint64_t handler_exceptions() const noexcept;
  /// How often accepting was paused: because connections_max() was reached, or because accept(2)
  /// has failed since descriptors or memory had run out. Clients wait in the backlog meanwhile.
  [[nodiscard]] std::uint64_t accept_pauses() const noexcept;
  /// The limit of concurrent connections: ListenOptions::connections_max, or what was derived.
  [[nodiscard]] std::size_t connections_max() const noexcept;

 protected:
  explicit StreamServerGroupBase(std::shared_ptr<detail::server::AcceptorGroup> acceptors) noexcept;

  [[nodiscard]] static Result<StreamServerGroupBase> open(LoopGroup& group, const Endpoint& at,
                                                          const ListenOptions& options);
  [[nodiscard]] static Result<StreamServerGroupBase> open(LoopGroup& group,
                                                          std::vector<UniqueFd> listeners,
                                                          bool (*supports)(const Endpoint&),
                                                          const ListenOptions& options);
  /// `check` may be null. ListenOptions::on_rejected gets the streams that it rejects.
  /// The stall detector names `created_at`.
  void serve_with(const std::function<Task<>(SocketStream)>& handler,
                  const std::source_location& created_at, detail::HandshakeCheck check = nullptr);
  [[nodiscard]] const std::shared_ptr<detail::server::ErrorReporter>& reporter() const noexcept;

  // Public functions of StreamServerGroup, but not of servers whose streams have a protocol.

  /// Serves with callbacks: each accepted stream becomes a Connection. All loops share the
  /// callbacks, so several threads invoke them concurrently, each for its own connections. Aborts
  /// if the server already serves.
  void serve(ConnectionCallbacks callbacks,
             std::source_location at = std::source_location::current());

  /// Posts a call of `function` for each open connection to the loops, if the server serves with
  /// callbacks, and returns at once. Several threads call `function` concurrently, each for its own
  /// connections. It may use and close the connections of its loop; it must not run the loop. What
  /// it throws is reported like an exception of a handler: see ListenOptions::on_error. Throws like
  /// EventLoop::post(). Callable from any thread.
  void for_each_connection(Callback<void(Connection&)> function);

 private:
  [[nodiscard]] static Result<StreamServerGroupBase> open(LoopGroup& group,
                                                          detail::server::ListenerSource source,
                                                          const ListenOptions& options);
  void close() noexcept;

  std::shared_ptr<detail::server::AcceptorGroup> acceptors_;
};

/// Accepts streams, and serves each with a task on one of the group's loops:
///
///   LoopGroup group({.threads = 4});
///   auto server = or_throw(TcpServerGroup::listen(group, at), "listen");
///   server.serve(echo);
///
/// Thread: a server must be created, started with serve() and destroyed on a thread that does not
/// belong to the group, because these functions wait for the group's threads.
/// Lifetime: the group must outlive the server. Destroying the server destroys its tasks and
/// connections, on their loops. A connection that moves to another loop of the group stays with its
/// server.
/// Reentrancy: callbacks and handlers must not destroy the server or assign to it; that aborts.
/// They may call the functions that are callable from any thread, such as stop(), and may post the
/// destruction to a loop outside the group. Do not move the server while another thread calls one
/// of its functions.
template <class S>
  requires std::derived_from<S, SocketStream>
class StreamServerGroup final : public StreamServerGroupBase {
 public:
  /// Fails like StreamServer::listen(), with the errors named at Placement, and with ECANCELED if
  /// the group has been stopped.
  [[nodiscard]] static Result<StreamServerGroup> listen(LoopGroup& group, const Endpoint& at,
                                                        const ListenOptions& options = {}) {
    if (!S::supports(at)) return std::unexpected(system_error(EAFNOSUPPORT));
    auto server = open(group, at, options);
    if (!server) return std::unexpected(server.error());
    return StreamServerGroup(std::move(*server));
  }

  /// Serves on listeners of one endpoint that are already open: see InheritedListeners. If each
  /// loop listens, the listeners are distributed, and each loop without one opens another on the
  /// same endpoint; that fails with EADDRINUSE unless the inherited ones were opened with
  /// SO_REUSEPORT by the same user. If one loop listens, the first loop uses all of them. Fails
  /// with EINVAL if `listeners` is empty, if one is not a listening stream socket, if their
  /// endpoints differ, or if they outnumber the loops that Placement::processor selects from; and
  /// with the errors of listen(). A Unix path is not removed when the server stops.
  [[nodiscard]] static Result<StreamServerGroup> adopt(LoopGroup& group,
                                                       std::vector<UniqueFd> listeners,
                                                       const ListenOptions& options = {}) {
    auto server = open(group, std::move(listeners), &S::supports, options);
    if (!server) return std::unexpected(server.error());
    return StreamServerGroup(std::move(*server));
  }

  using StreamServerGroupBase::for_each_connection;
  using StreamServerGroupBase::serve;

  /// Starts accepting and runs `handler(stream)`, which returns a Task<>, for each stream. Each
  /// loop has its own copy of the handler. An exception of a handler ends only its stream: see
  /// ListenOptions::on_error. Aborts if the server already serves.
  template <class Handler>
    requires std::is_invocable_r_v<Task<>, Handler&, S>
  void serve(Handler handler, std::source_location at = std::source_location::current()) {
    static_assert(std::copy_constructible<Handler>,
                  "a server copies its handler, so what the handler captures must be copyable: "
                  "capture a std::shared_ptr in place of a std::unique_ptr");
    if constexpr (std::copy_constructible<Handler>) {  // One error is enough.
      serve_with(
          [handler = std::move(handler)](SocketStream stream) mutable -> Task<> {
            return handler(S(std::move(stream)));
          },
          at);
    }
  }
  /// Explains why a function is not a handler.
  template <detail::LooksCallable Handler>
    requires(!std::is_invocable_r_v<Task<>, std::decay_t<Handler>&, S>)
  void serve(const Handler& /*handler*/) {
    static_assert(std::is_invocable_r_v<Task<>, Handler&, S>,
                  "a handler has one parameter, the stream by value, and returns Task<>: "
                  "Task<> serve(TcpStream peer)");
  }

 private:
  explicit StreamServerGroup(StreamServerGroupBase&& base) noexcept
      : StreamServerGroupBase(std::move(base)) {}
};

/// A server for TCP whose connections are distributed over the loops of a group.
using TcpServerGroup = StreamServerGroup<TcpStream>;
/// A server for Unix sockets whose connections are distributed over the loops of a group.
using UnixServerGroup = StreamServerGroup<UnixStream>;

}  // namespace tambour

#pragma GCC visibility pop
