#include <tambour/tcp.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <utility>

#include "net/connect.h"

namespace tambour {

TcpStream::TcpStream(Socket&& socket) noexcept : Stream(std::move(socket)) {
  // Where it is closed already, whoever uses it next is told.
  static_cast<void>(set_delay(false));
}

Result<> TcpStream::set_delay(bool delay) noexcept {
  return set_option(IPPROTO_TCP, TCP_NODELAY, delay ? 0 : 1);
}

Task<Result<TcpStream>> TcpStream::connect(Endpoint to) {
  if (!takes(to)) co_return std::unexpected(system_error(EAFNOSUPPORT));
  auto socket = co_await net::connect_stream(to);
  if (!socket) co_return std::unexpected(socket.error());
  co_return TcpStream(std::move(*socket));
}

}  // namespace tambour
