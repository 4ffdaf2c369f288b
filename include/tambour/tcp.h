// Streams over TCP: connecting, and serving.
#pragma once

#include <utility>

#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/stream_server.h>
#include <tambour/task.h>
#include <tambour/tcp_options.h>

namespace tambour {

/// A stream that sends small messages at once (TCP_NODELAY), as do the connections of a TcpServer.
class TcpStream final : public Stream {
 public:
  TcpStream() = default;
  /// Owns `fd`, a connected stream socket, from now on.
  TcpStream(EventLoop& loop, int fd) noexcept : TcpStream(Socket(loop, fd)) {
    static_cast<void>(set_delay(false));  // Where it is no socket, whoever uses it next is told.
  }
  /// Leaves its options as they are: what a listener accepts has the listener's.
  explicit TcpStream(Socket&& socket) noexcept : Stream(std::move(socket)) {}

  /// Connects on the loop of the task that awaits. Fails with the errors of connect(2),
  /// ECONNREFUSED for example, and with EAFNOSUPPORT for a Unix name. If no server listens on a
  /// port of this machine, the kernel may connect a socket to itself: that is ECONNREFUSED too.
  static Task<Result<TcpStream>> connect(Endpoint to);

  /// Whether small messages wait for more (Nagle's algorithm), as they do not by default.
  Result<> set_delay(bool delay) noexcept;

  /// Sets the options that are not zero. EINVAL where a value is out of the kernel's range: more
  /// than 32767 seconds of keepalive time or interval, more than 127 probes.
  Result<> set_tcp_options(const TcpOptions& options) noexcept;

  /// Whether it can be connected to, or listen at, `endpoint`.
  static bool takes(const Endpoint& endpoint) noexcept { return endpoint.is_ip(); }
};

using TcpServer = StreamServer<TcpStream>;

}  // namespace tambour
