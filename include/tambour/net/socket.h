// A socket without functions to read and write: a listener, or a socket that is not connected yet.
#pragma once

#include <tambour/base/result.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/io_handle.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A socket of any type. To read from and write to a connected stream socket, construct a
/// SocketStream from it.
class Socket final : public IoHandle {
 public:
  Socket() = default;
  /// Takes ownership of `fd`. Aborts if called on a thread other than the loop's.
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

#pragma GCC visibility pop
