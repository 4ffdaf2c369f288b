// Sockets that are not streams: listeners, datagram sockets, and sockets that are not connected
// yet.
#pragma once

#include <tambour/endpoint.h>
#include <tambour/io_handle.h>
#include <tambour/result.h>

namespace tambour {

/// A socket of any type. A connected stream socket becomes a SocketStream.
class Socket : public IoHandle {
 public:
  Socket() = default;
  /// Takes ownership of `fd`. Aborts on another thread than the loop's.
  Socket(EventLoop& loop, int fd) noexcept;

  /// Creates a socket: socket(2).
  [[nodiscard]] static Result<Socket> open(EventLoop& loop, int family, int type,
                                           int protocol = 0) noexcept;

  /// Closes the socket. Waits on it fail with ECANCELED. No effect on a closed socket.
  using IoHandle::close;
  /// Releases ownership of the file descriptor and returns it. Waits on the socket fail with
  /// ECANCELED.
  using IoHandle::release;

  /// getsockname(2) and getpeername(2).
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;

  /// setsockopt(2) with an int.
  [[nodiscard]] Result<> set_option(int level, int option, int value) noexcept;
};

}  // namespace tambour
