// Listening, and serving each stream that comes: what TcpServer and UnixServer share.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

  /// Permissions of the socket file of a Unix path, 0660 for example, whatever the umask; a client
  /// needs write permission to connect (unix(7)). The file never has others, not even while it is
  /// created. By default: 0777 less the umask. EINVAL if the endpoint is no Unix path, or if other
  /// bits are set. Simulated hosts have no permissions and ignore it.
  std::optional<mode_t> unix_mode{};

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

  /// Serves in the callback style: each stream becomes a Connection. Aborts if it is called twice.
  void serve(ConnectionCallbacks callbacks);

  /// Keeps the Unix path when the server stops: another process listens there too, or will. Also
  /// for a forked child that destroys its copy of the server.
  void leave_name() noexcept;

  /// Accepts no more, and closes the listener; the streams go on.
  void stop() noexcept;

  /// Stops, waits for at most `grace` until the handlers have ended, requests the remaining ones to
  /// stop, and waits for them. Aborts if one of the server's own handlers awaits it, for which it
  /// would wait: spawn it on the loop instead.
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
/// Destroying it destroys the handlers, and closes the connections without invoking callbacks. Its
/// callbacks may do that. A handler may stop and move it, but must not destroy it, because its own
/// frame belongs to the server; post that: `loop.post([&] { server.reset(); })`. The server must
/// outlive the tasks that wait in accept() or shut_down(), and the loop must outlive the server.
/// All functions that change it must be called on the loop's thread. Breaking these rules aborts
/// with a message, where the server can tell.
template <class S>
  requires std::derived_from<S, Stream>
class StreamServer final : public StreamServerBase {
 public:
  /// EADDRINUSE, EACCES, EADDRNOTAVAIL; EAFNOSUPPORT where the endpoint is not one of such streams.
  ///
  /// Unix paths: a socket file that refuses connections, because its server was killed, is
  /// replaced. If a server answers there, or the path is not a socket, listen() fails with
  /// EADDRINUSE. When the server stops, the path is removed, if it is still the file that listen()
  /// has created. A relative path keeps its directory, also after chdir(2). Servers that start or
  /// stop on one path at the same time wait for each other, for at most one second, by flock(2) on
  /// the file `PATH.tambour-lock`, which exists only meanwhile; EADDRINUSE after that.
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
  /// exception that leaves a handler leaves the loop's run(). Aborts if it is called twice.
  template <class Handler>
    requires std::is_invocable_r_v<Task<>, Handler&, S>
  void serve(Handler handler) {
    serve_with([handler = std::move(handler)](Socket socket) mutable -> Task<> {
      return handler(S(std::move(socket)));
    });
  }

  /// Waits for one connection. Aborts if the server serves.
  Task<Result<S>> accept() {
    auto socket = co_await accept_socket();
    if (!socket) co_return std::unexpected(socket.error());
    co_return S(std::move(*socket));
  }

 private:
  explicit StreamServer(StreamServerBase&& base) noexcept : StreamServerBase(std::move(base)) {}
};

}  // namespace tambour
