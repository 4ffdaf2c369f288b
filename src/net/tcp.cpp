#include <tambour/tcp.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <utility>

#include "net/connect.h"

namespace tambour {

Result<> TcpStream::set_delay(bool delay) noexcept {
  return set_option(IPPROTO_TCP, TCP_NODELAY, delay ? 0 : 1);
}

Task<Result<TcpStream>> TcpStream::connect(Endpoint to) {
  if (!takes(to)) co_return std::unexpected(system_error(EAFNOSUPPORT));
  auto socket = co_await net::connect_stream(to);
  if (!socket) co_return std::unexpected(socket.error());
  TcpStream stream(std::move(*socket));
  static_cast<void>(stream.set_delay(false));
  co_return stream;
}

}  // namespace tambour
