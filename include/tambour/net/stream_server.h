// Listening for connections and serving each of them: the common part of TcpServer and UnixServer.
#pragma once

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/net/connection.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/listen_options.h>  // IWYU pragma: export
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::detail::server {
class Acceptor;
class ErrorReporter;
}  // namespace tambour::detail::server

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The part of a StreamServer that does not depend on the type of stream; programs use
/// StreamServer.
class StreamServerBase {
 public:
  StreamServerBase(StreamServerBase&&) noexcept;
  StreamServerBase& operator=(StreamServerBase&&) noexcept;
  ~StreamServerBase();

  /// The endpoint that the server listens on; port 0 is replaced by the port that the system chose.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;

  /// The listening file descriptor, which the server owns; -1 after stop().
  [[nodiscard]] int fd() const noexcept;

  /// The context of ListenOptions::tls, for example to reload() it; empty without TLS.
  [[nodiscard]] const tls::ServerContext& tls() const noexcept;

  /// Prevents stop() from removing the Unix path, for use when another process listens on it or
  /// will do so. A forked child need not call it: its copy of the server never removes the path.
  void keep_path() noexcept;

  /// Stops accepting and closes the listener. Accepted streams stay open.
  void stop() noexcept;

  /// Graceful shutdown: stops accepting, requests a stop of shutdown_token(), waits up to `grace`
  /// for the handlers to end, requests the remaining ones to stop, and waits for those. A
  /// connection after close_after_write() whose peer has acknowledged everything is reset after at
  /// most a second (ConnectionLimits::linger). Aborts if a handler of this server awaits it,
  /// because it would wait for itself: spawn shut_down() on the loop instead.
  Task<> shut_down(Duration grace);

  /// A token whose stop is requested when shut_down() begins, so that handlers and callbacks can
  /// finish the current request and close, before `grace` expires. Its callbacks
  /// (std::stop_callback) run on the loop's thread, must not throw, and must not destroy the
  /// server. The token may be kept longer than the server.
  [[nodiscard]] std::stop_token shutdown_token() const noexcept;

  /// The number of streams that are being served, and the total number accepted.
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
  struct Destroy {
    void operator()(detail::server::Acceptor* acceptor) const noexcept;
  };
  using AcceptorPointer = std::unique_ptr<detail::server::Acceptor, Destroy>;
  explicit StreamServerBase(AcceptorPointer acceptor) noexcept;

  /// `function` is the public function that a failed thread check names.
  [[nodiscard]] static Result<StreamServerBase> open(EventLoop& loop, const Endpoint& at,
                                                     const ListenOptions& options,
                                                     const std::source_location& function);
  [[nodiscard]] static Result<StreamServerBase> open(EventLoop& loop, UniqueFd listener,
                                                     bool (*supports)(const Endpoint&),
                                                     const ListenOptions& options,
                                                     const std::source_location& function);
  Task<Result<SocketStream>> accept_stream();
  [[nodiscard]] const std::shared_ptr<detail::server::ErrorReporter>& reporter() const noexcept;
  /// `check` may be null. ListenOptions::on_rejected gets the streams that it rejects.
  /// The stall detector names `created_at`.
  void serve_with(std::function<Task<>(SocketStream)> handler,
                  const std::source_location& created_at, detail::HandshakeCheck check = nullptr);

  // Public functions of StreamServer, but not of servers whose streams have a protocol.

  /// Serves with callbacks: each accepted stream becomes a Connection. Aborts if the server already
  /// serves.
  void serve(ConnectionCallbacks callbacks,
             std::source_location at = std::source_location::current());

  /// Calls `function` for each open connection, if the server serves with callbacks: streams of
  /// tasks are not connections. `function` may use and close any connection and destroy the server,
  /// which ends the calls; it must not run the loop. Throws what `function` throws.
  void for_each_connection(Callback<void(Connection&)> function);

 private:
  [[nodiscard]] static Result<StreamServerBase> create(EventLoop& loop,
                                                       const ListenOptions& options,
                                                       const std::source_location& function);

  AcceptorPointer acceptor_;
};

/// Accepts streams, and serves each with a task.
///
///   const Endpoint at = or_throw(Endpoint::parse("127.0.0.1:7000"));
///   TcpServer server = or_throw(TcpServer::listen(loop, at), "listen on " + at.to_string());
///   server.serve(echo);
///
/// If the process runs out of file descriptors (EMFILE) or the system out of memory, the server
/// pauses and then accepts again; pending connections stay in the backlog.
///
/// Lifetime: destroying the server destroys the handlers and closes the connections without
/// invoking callbacks. Callbacks may destroy the server. A handler may stop or move it but must not
/// destroy it, because the handler's own frame belongs to the server; post the destruction instead:
/// `loop.post([&] { server.reset(); })`. The server must outlive the tasks that wait in accept() or
/// shut_down(), and the loop must outlive the server.
/// Thread: all functions that change the server must be called on the loop's thread.
/// Checks: a violation of these rules aborts with a message if the server can detect it.
template <class S>
  requires std::derived_from<S, SocketStream>
class StreamServer final : public StreamServerBase {
 public:
  /// Fails with EADDRINUSE, EACCES or EADDRNOTAVAIL, with EAFNOSUPPORT if the endpoint does not fit
  /// the type of stream, and with EINVAL if ListenOptions::placement is set.
  ///
  /// Unix paths: if a socket file exists and refuses connections, because its server was killed, it
  /// is replaced. If a server answers there, or the path is not a socket, listen() fails with
  /// EADDRINUSE. When the server stops, it removes the path if that is still the file that listen()
  /// created. A relative path keeps referring to its original directory after chdir(2). Servers
  /// that start or stop on the same path at the same time wait for each other, for at most one
  /// second, by flock(2) on the file `PATH.tambour-lock`, which is removed afterwards; after one
  /// second listen() fails with EADDRINUSE.
  [[nodiscard]] static Result<StreamServer> listen(EventLoop& loop, const Endpoint& at,
                                                   const ListenOptions& options = {}) {
    if (!S::supports(at)) return std::unexpected(system_error(EAFNOSUPPORT));
    auto server = open(loop, at, options, std::source_location::current());
    if (!server) return std::unexpected(server.error());
    return StreamServer(std::move(*server));
  }

  /// Serves on a listener that is already open, usually an inherited one; see InheritedListeners.
  /// Options that apply to listen() are ignored. Fails with EINVAL if `listener` is not a listening
  /// stream socket, and with EAFNOSUPPORT or EBADF. A Unix path is not removed when the server
  /// stops.
  [[nodiscard]] static Result<StreamServer> adopt(EventLoop& loop, UniqueFd listener,
                                                  const ListenOptions& options = {}) {
    auto server =
        open(loop, std::move(listener), &S::supports, options, std::source_location::current());
    if (!server) return std::unexpected(server.error());
    return StreamServer(std::move(*server));
  }

  using StreamServerBase::for_each_connection;
  using StreamServerBase::serve;

  /// Starts accepting and runs `handler(stream)`, which returns a Task<>, for each stream. An
  /// exception of a handler ends only its stream: see ListenOptions::on_error. Aborts if the server
  /// already serves.
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

  /// Waits for one connection. Aborts if serve() was called.
  Task<Result<S>> accept() {
    auto stream = co_await accept_stream();
    if (!stream) co_return std::unexpected(stream.error());
    co_return S(std::move(*stream));
  }

 private:
  explicit StreamServer(StreamServerBase&& base) noexcept : StreamServerBase(std::move(base)) {}
};

}  // namespace tambour

#pragma GCC visibility pop
