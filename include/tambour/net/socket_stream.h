// Streams that are sockets: the common part of TcpStream and UnixStream.
#pragma once

#include <concepts>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/proxy_header.h>
#include <tambour/net/socket.h>
#include <tambour/net/stream.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A connected stream socket of any family.
class SocketStream : public Stream {
 public:
  SocketStream() = default;
  /// Takes ownership of `fd`, a connected stream socket.
  SocketStream(EventLoop& loop, int fd) noexcept;
  /// `socket` must be a connected stream socket. Waits on it fail with ECANCELED.
  explicit SocketStream(Socket&& socket) noexcept;

  /// The own endpoint: getsockname(2), whose errors it returns.
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// For a proxied stream, the endpoint that the proxy reported.
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;

  /// The header that a proxy sent at the start of the stream, or null if there was none; see
  /// net/proxy_protocol.h.
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept { return proxy_header_.get(); }
  /// Servers that require a header call it; code that reads the header itself may, too. Throws
  /// std::bad_alloc.
  void set_proxy_header(ProxyHeader header);

  /// Closes the stream so that the peer's reads fail with ECONNRESET. What the kernel still has to
  /// send is lost. Use it if the peer must not take what it has received for complete. Reads and
  /// writes fail with ECANCELED. A Unix socket is closed: it has no reset. No effect on a closed
  /// stream.
  void reset() noexcept;

  /// setsockopt(2) with an int.
  [[nodiscard]] Result<> set_option(int level, int option, int value) noexcept;

 private:
  friend class detail::net::ConnectionCore;

  detail::OwnedPointer<const ProxyHeader> proxy_header_;
};

namespace detail {
/// Whether S is a stream whose class does not say its family, so that a TcpStream or a UnixStream
/// can be made of it.
template <class S>
inline constexpr bool is_stream_of_any_family = std::same_as<S, SocketStream>;
}  // namespace detail

}  // namespace tambour

#pragma GCC visibility pop
