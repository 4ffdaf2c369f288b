// The calls that every socket has: its addresses and options. The descriptor must be open.
#pragma once

#include <sys/socket.h>

#include <cerrno>

#include <tambour/base/result.h>
#include <tambour/net/bind_options.h>
#include <tambour/net/endpoint.h>

#include "backend/system.h"
#include "base/failure.h"

namespace tambour::detail::net {

using SocketName = int (backend::System::*)(int, sockaddr*, socklen_t*) noexcept;

inline Result<Endpoint> endpoint_of(backend::System& system, int fd, SocketName name) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if ((system.*name)(fd, place, &size) != 0) return base::failure(errno);
  return Endpoint::from(place, size);
}

/// getsockname(2)
inline Result<Endpoint> local_endpoint(backend::System& system, int fd) noexcept {
  return endpoint_of(system, fd, &backend::System::getsockname);
}

/// getpeername(2)
inline Result<Endpoint> peer_endpoint(backend::System& system, int fd) noexcept {
  return endpoint_of(system, fd, &backend::System::getpeername);
}

/// setsockopt(2) with an int.
inline Result<> set_option(backend::System& system, int fd, int level, int option,
                           int value) noexcept {
  if (system.setsockopt(fd, level, option, &value, sizeof(value)) != 0) return base::failure(errno);
  return {};
}

/// Call before bind(2) and connect(2). `family` is that of the socket.
Result<> set_bind_options(backend::System& system, int fd, int family,
                          const BindOptions& options) noexcept;

/// From now on, close(2) resets the connection and discards what the kernel still has to send:
/// socket(7), SO_LINGER with a time of zero.
inline void reset_on_close(backend::System& system, int fd) noexcept {
  constexpr linger no_linger{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(system.setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger)));
}

}  // namespace tambour::detail::net
