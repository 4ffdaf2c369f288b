#include "net/connect.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <tambour/detail/io_operation.h>
#include <tambour/event_loop.h>

#include "backend/system.h"
#include "loop/core.h"

namespace tambour::net {
namespace {

class Connect final : public SocketWait {
 public:
  Connect(Socket& socket, const Endpoint& to) noexcept
      : SocketWait(socket, detail::IoKind::connect, true), to_(to), size_(to.size()) {
    address = const_cast<sockaddr*>(to_.data());  // NOLINT: connect(2) does not write to it.
    address_size = &size_;
  }
  [[nodiscard]] Error await_resume() const noexcept {
    return outcome < 0 ? system_error(outcome) : Error();
  }

 private:
  Endpoint to_;
  socklen_t size_;
};

}  // namespace

bool is_connected_to_itself(const Socket& socket, const Endpoint& to) noexcept {
  if (!to.is_ip()) return false;
  const auto local = socket.local_endpoint();
  if (!local || local->port() != to.port()) return false;
  // peer_endpoint() fails with ENOTCONN if the peer has already reset the connection.
  const auto peer = socket.peer_endpoint();
  return peer && *peer == *local;
}

Task<Result<Socket>> connect_stream(Endpoint to) {
  const TaskContext& context = co_await this_task;
  // A new socket usually gets another local port.
  constexpr int attempts = 3;
  for (int i = 0; i < attempts; ++i) {
    auto socket = Socket::open(*context.loop, to.family(), SOCK_STREAM);
    if (!socket) co_return std::unexpected(socket.error());
    if (const Error error = co_await Connect(*socket, to)) co_return std::unexpected(error);
    if (!is_connected_to_itself(*socket, to)) co_return std::move(*socket);
    // Closing with a reset avoids TIME_WAIT, which would occupy the port.
    constexpr linger reset{.l_onoff = 1, .l_linger = 0};
    loop::core_of(*context.loop)
        .backend()
        .system()
        .setsockopt(socket->descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  co_return std::unexpected(system_error(ECONNREFUSED));
}

}  // namespace tambour::net
