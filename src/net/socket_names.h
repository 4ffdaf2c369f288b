// The local and peer addresses of a socket: getsockname(2), getpeername(2).
#pragma once

#include <sys/socket.h>

#include <cerrno>

#include <tambour/endpoint.h>
#include <tambour/result.h>

#include "backend/system.h"

namespace tambour::net {

using SocketName = int (backend::System::*)(int, sockaddr*, socklen_t*) noexcept;

inline Result<Endpoint> endpoint_of(backend::System& system, int fd, SocketName name) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if ((system.*name)(fd, place, &size) != 0) return std::unexpected(system_error(errno));
  return Endpoint::from(place, size);
}

}  // namespace tambour::net
