// Opens sockets and sets their options before they are bound or connected.
#include <tambour/net/socket.h>

#include <sys/socket.h>

#include <cerrno>

#include "backend/system.h"
#include "base/failure.h"
#include "loop/core.h"
#include "net/socket_calls.h"

namespace tambour {

Socket::Socket(EventLoop& loop, int fd) noexcept : IoHandle(loop, fd) {}

Result<Socket> Socket::open(EventLoop& loop, int family, int type, int protocol) noexcept {
  detail::backend::System& system = detail::loop::core_of(loop).backend().system();
  const int fd = system.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
  if (fd < 0) return detail::base::failure(errno);
  return Socket(loop, fd);
}

Result<Endpoint> Socket::local_endpoint() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::local_endpoint(system(), fd());
}

Result<Endpoint> Socket::peer_endpoint() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::peer_endpoint(system(), fd());
}

Result<> Socket::set_option(int level, int option, int value) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::set_option(system(), fd(), level, option, value);
}

}  // namespace tambour
