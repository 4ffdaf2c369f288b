// TCP and Unix-domain streams: connecting, and serving.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <tambour/connection.h>
#include <tambour/endpoint.h>
#include <tambour/event_loop.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>
#include <tambour/task_scope.h>

namespace tambour {

/// A stream over TCP, which sends small messages at once (TCP_NODELAY) from the start, or over a
/// Unix-domain socket.
class TcpStream final : public Stream {
 public:
  TcpStream() = default;
  /// Owns `fd`, a connected stream socket, from now on.
  TcpStream(EventLoop& loop, int fd) noexcept;

  /// On the loop of the task that awaits. ECONNREFUSED and all that connect(2) says; EAGAIN where a
  /// Unix listener's backlog is full.
  static Task<Result<TcpStream>> connect(Endpoint to);

  /// Whether small messages wait for more (Nagle's algorithm), as they do not by default.
  Result<> set_delay(bool delay) noexcept;

 private:
  explicit TcpStream(Socket&& socket) noexcept;
};

struct ListenOptions {
  int backlog = 4096;                      ///< listen(2); the system's somaxconn cuts it.
  bool reuse_port = false;                 ///< Several listeners on one endpoint: SO_REUSEPORT.
  bool v6_only = false;                    ///< IPV6_V6ONLY.
  std::size_t connections_max = SIZE_MAX;  ///< Served at a time; further ones wait in the backlog.
};

/// Accepts streams, and serves each with a task.
///
///   TcpServer server = TcpServer::listen(loop, Endpoint::parse("127.0.0.1:7000").value()).value();
///   server.serve(echo);
///
/// Where the process has no descriptor left (EMFILE) or the system no memory, it waits a little and
/// accepts again; the connections wait in the backlog. Destroying it destroys the tasks.
class TcpServer {
 public:
  /// EADDRINUSE, EACCES, EADDRNOTAVAIL. A Unix path that nobody listens on any more is unlinked
  /// first, and again when the server stops; one that somebody does is EADDRINUSE.
  static Result<TcpServer> listen(EventLoop& loop, const Endpoint& at,
                                  const ListenOptions& options = {});

  TcpServer(TcpServer&&) noexcept;
  TcpServer& operator=(TcpServer&&) noexcept;
  ~TcpServer();

  /// Where it listens, the port included that the system has chosen for 0.
  [[nodiscard]] const Endpoint& endpoint() const noexcept;

  /// Waits for one connection, for those who do not serve().
  Task<Result<TcpStream>> accept();

  /// Accepts from now on, and runs `handler(TcpStream)`, which returns a Task<>, for each stream.
  /// An exception that leaves a handler leaves the loop's run(). Once.
  template <class Handler>
    requires std::is_invocable_r_v<Task<>, Handler&, TcpStream>
  void serve(Handler handler) {
    serve_with(std::move(handler));
  }

  /// The same in the callback style: each stream becomes a Connection.
  void serve(ConnectionCallbacks callbacks);

  /// Accepts no more, and closes the listener; the streams go on.
  void stop() noexcept;

  /// Stops, waits until the handlers have ended, but for `grace` at most, asks those that are left
  /// to stop, and waits for them. For a task.
  Task<> shut_down(Duration grace);

  /// How many streams are served now, and how many have been accepted in all.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::uint64_t accepted() const noexcept;

 private:
  class State;
  explicit TcpServer(std::unique_ptr<State> state) noexcept;
  void serve_with(std::function<Task<>(TcpStream)> handler);

  std::unique_ptr<State> state_;
};

}  // namespace tambour
