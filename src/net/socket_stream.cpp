// SocketStream: endpoints, options and the state that all stream sockets have.
#include <tambour/net/socket_stream.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "backend/system.h"
#include "base/failure.h"
#include "net/socket_calls.h"

namespace tambour {

SocketStream::SocketStream(EventLoop& loop, int fd) noexcept
    : Stream(loop, fd, detail::io::TransportKind::socket) {}

SocketStream::SocketStream(Socket&& socket) noexcept
    : Stream(std::move(socket), detail::io::TransportKind::socket) {
  // They are not operations of a stream.
  stop_waiting(false);
  stop_waiting(true);
}

Result<Endpoint> SocketStream::local_endpoint() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::local_endpoint(system(), fd());
}

Result<Endpoint> SocketStream::peer_endpoint() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  if (proxy_header_ != nullptr && proxy_header_->source) return *proxy_header_->source;
  return detail::net::peer_endpoint(system(), fd());
}

void SocketStream::set_proxy_header(ProxyHeader header) {
  proxy_header_ = std::make_unique<const ProxyHeader>(std::move(header));
}

void SocketStream::reset() noexcept {
  if (!is_open()) return;
  detail::net::reset_on_close(system(), fd());
  close();
}

Result<> SocketStream::set_option(int level, int option, int value) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::set_option(system(), fd(), level, option, value);
}

}  // namespace tambour
