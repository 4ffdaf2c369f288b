// TCP streams.
#pragma once

#include <concepts>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/tcp_options.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A TCP stream. Small messages are sent at once (TCP_NODELAY), also on connections of a TcpServer.
class TcpStream final : public SocketStream {
 public:
  TcpStream() = default;
  /// Takes ownership of `fd`, a connected stream socket.
  TcpStream(EventLoop& loop, int fd) noexcept : SocketStream(loop, fd) {
    // An error is ignored here: if `fd` is not a socket, the next operation reports it.
    static_cast<void>(set_no_delay(true));
  }
  /// Keeps the socket's options: an accepted socket inherits those of its listener.
  /// `stream` must not be a UnixStream.
  template <std::derived_from<SocketStream> S>
    requires(detail::is_stream_of_any_family<S>)
  explicit TcpStream(S&& stream) noexcept : SocketStream(std::forward<S>(stream)) {}

  /// Connects on the loop of the awaiting task. Fails with the errors of connect(2), for example
  /// ECONNREFUSED, and with EAFNOSUPPORT for a Unix endpoint. If no server listens on a port of
  /// this machine, the kernel may connect a socket to itself; connect() reports that as
  /// ECONNREFUSED.
  [[nodiscard]] static Task<Result<TcpStream>> connect(Endpoint to);

  /// Enables or disables Nagle's algorithm, which delays small messages. Disabled by default.
  [[nodiscard]] Result<> set_no_delay(bool no_delay) noexcept;

  /// Sets the options that are not zero. Fails with EINVAL if a value exceeds the kernel's range:
  /// 32767 seconds of keepalive time or interval, 127 probes.
  [[nodiscard]] Result<> set_tcp_options(const TcpOptions& options) noexcept;

  /// Returns true if a TCP stream can connect to, or listen on, `endpoint`.
  static bool supports(const Endpoint& endpoint) noexcept { return endpoint.is_ip(); }
};

}  // namespace tambour

#pragma GCC visibility pop
