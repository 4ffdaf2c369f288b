// Listening, and serving each stream that comes: what TcpServer and UnixServer share.
#pragma once

#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <tambour/clock.h>
#include <tambour/connection.h>
#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>
#include <tambour/tcp_options.h>
#include <tambour/unique_fd.h>

namespace tambour {

class EventLoop;

/// Whether a stream begins with what a proxy says about it (proxy_protocol.h). Where that is
/// required, only proxies may reach the server: whoever can connect can say that he is anybody.
enum class ProxyProtocol : std::uint8_t { off, required };

struct ListenOptions {
  int backlog = 4096;                      ///< listen(2); the system's somaxconn cuts it.
  bool reuse_port = false;                 ///< Several listeners on one endpoint: SO_REUSEPORT.
  bool v6_only = false;                    ///< IPV6_V6ONLY.
  std::size_t connections_max = SIZE_MAX;  ///< Served at a time; further ones wait in the backlog.

  /// Those that are to be served; who accepts by himself awaits read_proxy_header() too.
  ProxyProtocol proxy_protocol = ProxyProtocol::off;
  Duration proxy_header_timeout = std::chrono::seconds(5);  ///< For the whole header.
  /// A longer header is refused with EMSGSIZE, before its bytes are read.
  std::size_t proxy_header_bytes_max = 8192;
  /// Is told of a stream that is closed without having been served, and why: ETIMEDOUT, or what
  /// read_proxy_header() says. May destroy the server.
  std::function<void(Stream&, Error)> on_refused{};

  /// Set on the listener, from which connections inherit them. Not for Unix names, nor for adopted
  /// listeners, which have their own.
  TcpOptions tcp{.keepalive_idle = std::chrono::seconds(60)};
};

/// What does not depend on the type of stream; programs use a StreamServer.
class StreamServerBase {
 public:
  StreamServerBase(StreamServerBase&&) noexcept;
  StreamServerBase& operator=(StreamServerBase&&) noexcept;
  ~StreamServerBase();

  /// Where it listens, the port included that the system has chosen for 0.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;

  /// The listener, which stays the server's; -1 once it has stopped.
  [[nodiscard]] int descriptor() const noexcept;

  /// Serves in the callback style: each stream becomes a Connection. Once.
  void serve(ConnectionCallbacks callbacks);

  /// Lets a Unix path be when the server stops: another program listens there too, or will.
  void leave_name() noexcept;

  /// Accepts no more, and closes the listener; the streams go on.
  void stop() noexcept;

  /// Stops, waits until the handlers have ended, but for `grace` at most, asks those that are left
  /// to stop, and waits for them. For a task that is none of its own handlers.
  Task<> shut_down(Duration grace);

  /// How many streams are served now, and how many have been accepted in all.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::uint64_t accepted() const noexcept;

 protected:
  class State;
  explicit StreamServerBase(std::unique_ptr<State> state) noexcept;

  static Result<StreamServerBase> open(EventLoop& loop, const Endpoint& at,
                                       const ListenOptions& options);
  static Result<StreamServerBase> open(EventLoop& loop, UniqueFd listener,
                                       bool (*takes)(const Endpoint&),
                                       const ListenOptions& options);
  Task<Result<Socket>> accept_socket();
  void serve_with(std::function<Task<>(Socket)> handler);

 private:
  std::unique_ptr<State> state_;
};

/// Accepts streams, and serves each with a task.
///
///   TcpServer server = TcpServer::listen(loop, Endpoint::parse("127.0.0.1:7000").value()).value();
///   server.serve(echo);
///
/// Where the process has no descriptor left (EMFILE) or the system no memory, it waits a little and
/// accepts again; the connections wait in the backlog.
///
/// Destroying it destroys the handlers, and closes the connections silently. Its callbacks may do
/// that. A handler may stop and move it, but not destroy it, as no task can destroy what it runs
/// in; it can leave that to the loop: `loop.post([&] { server.reset(); })`. Outlives the tasks that
/// wait in accept() or shut_down(). Belongs to the thread of its loop, which outlives it.
template <class S>
  requires std::derived_from<S, Stream>
class StreamServer final : public StreamServerBase {
 public:
  /// EADDRINUSE, EACCES, EADDRNOTAVAIL; EAFNOSUPPORT where the endpoint is not one of such streams.
  /// A Unix path that nobody listens on any more is unlinked first, and again when the server
  /// stops; one that somebody does is EADDRINUSE.
  static Result<StreamServer> listen(EventLoop& loop, const Endpoint& at,
                                     const ListenOptions& options = {}) {
    if (!S::takes(at)) return std::unexpected(system_error(EAFNOSUPPORT));
    auto server = open(loop, at, options);
    if (!server) return std::unexpected(server.error());
    return StreamServer(std::move(*server));
  }

  /// Goes on with a listener that is open already: an inherited one, see InheritedListeners. The
  /// options of listening do not count. EINVAL where it is no listener of a stream; EAFNOSUPPORT,
  /// EBADF. A Unix path stays when the server stops.
  static Result<StreamServer> adopt(EventLoop& loop, UniqueFd listener,
                                    const ListenOptions& options = {}) {
    auto server = open(loop, std::move(listener), &S::takes, options);
    if (!server) return std::unexpected(server.error());
    return StreamServer(std::move(*server));
  }

  using StreamServerBase::serve;

  /// Accepts from now on, and runs `handler(stream)`, which returns a Task<>, for each stream. An
  /// exception that leaves a handler leaves the loop's run(). Once.
  template <class Handler>
    requires std::is_invocable_r_v<Task<>, Handler&, S>
  void serve(Handler handler) {
    serve_with([handler = std::move(handler)](Socket socket) mutable -> Task<> {
      return handler(S(std::move(socket)));
    });
  }

  /// Waits for one connection, for those who do not serve().
  Task<Result<S>> accept() {
    auto socket = co_await accept_socket();
    if (!socket) co_return std::unexpected(socket.error());
    co_return S(std::move(*socket));
  }

 private:
  explicit StreamServer(StreamServerBase&& base) noexcept : StreamServerBase(std::move(base)) {}
};

}  // namespace tambour
