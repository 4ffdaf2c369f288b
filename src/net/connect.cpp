// Connects a socket: connect(2) without blocking, and the connection of a socket to itself, which
// is an error.
#include "net/connect.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <tambour/detail/first_call.h>
#include <tambour/loop/event_loop.h>

#include "backend/system.h"
#include "base/failure.h"
#include "base/probe.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/socket_calls.h"

namespace tambour::detail::net {
namespace {

class Connect final : public IoWait {
 public:
  Connect(Socket& socket, const Endpoint& to) noexcept
      : IoWait(socket, Events::write, detail::FirstCall::at_once), to_(to), fd_(socket.fd()) {}
  [[nodiscard]] Error await_resume() const noexcept {
    TAMBOUR_PROBE2(connect, fd_, -outcome);
    return outcome < 0 ? system_error(outcome) : Error();
  }

 private:
  [[nodiscard]] bool step(loop::Core& core) noexcept override {
    backend::System& system = core.backend().system();
    const std::int32_t answer =
        std::exchange(in_progress_, true) ? progress(system) : connect(system);
    if (answer == -EINPROGRESS) return false;
    // connect(2) on a Unix socket fails with EAGAIN if the backlog is full, and no event reports
    // when it is not full any more: the caller has to retry.
    outcome = answer;
    return true;
  }

  [[nodiscard]] WaitKind wait_kind() const noexcept override { return WaitKind::connect; }

  [[nodiscard]] std::int32_t connect(backend::System& system) const noexcept {
    return io::retry([&] { return system.connect(fd(), to_.data(), to_.size()); });
  }

  /// The result of a connect(2) that failed with EINPROGRESS.
  [[nodiscard]] std::int32_t progress(backend::System& system) const noexcept {
    int error = 0;
    socklen_t error_size = sizeof(error);
    if (system.getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return -errno;
    if (error != 0) return -error;
    // SO_ERROR may also be 0 because the connection is still in progress: readiness can be reported
    // spuriously.
    const std::int32_t again = connect(system);
    if (again == -EISCONN) return 0;
    return again == -EALREADY ? -EINPROGRESS : again;
  }

  Endpoint to_;
  int fd_;
  bool in_progress_ = false;
};

}  // namespace

namespace {

/// Failures to set the options are ignored: without them fewer ports can be used.
Result<> bind_to(Socket& socket, const Endpoint& local, backend::System& system) noexcept {
  if (local.is_ip()) {
    // With a port, several sockets with different peers may use it. Without one, the port is chosen
    // by connect(2), so that only the pair of endpoints must be unique (Linux 4.2).
    const bool has_port = local.port() != 0;
    static_cast<void>(has_port ? socket.set_option(SOL_SOCKET, SO_REUSEADDR, 1)
                               : socket.set_option(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1));
  }
  if (system.bind(socket.fd(), local.data(), local.size()) != 0) return base::failure(errno);
  return {};
}

}  // namespace

bool is_connected_to_itself(const Socket& socket, const Endpoint& to) noexcept {
  if (!to.is_ip()) return false;
  const auto local = socket.local_endpoint();
  if (!local || local->port() != to.port()) return false;
  // peer_endpoint() fails with ENOTCONN if the peer has already reset the connection.
  const auto peer = socket.peer_endpoint();
  return peer && *peer == *local;
}

Task<Result<SocketStream>> connect_stream(Endpoint to, std::optional<Endpoint> local,
                                          const BindOptions* options) {
  const TaskContext& context = co_await this_task;
  // A new socket usually gets another local port.
  constexpr int attempts = 3;
  for (int i = 0; i < attempts; ++i) {
    auto socket = Socket::open(*context.loop, to.family(), SOCK_STREAM);
    if (!socket) co_return std::unexpected(socket.error());
    backend::System& system = loop::core_of(*context.loop).backend().system();
    if (options != nullptr && to.is_ip()) {
      if (const auto set = set_bind_options(system, socket->fd(), to.family(), *options); !set)
        co_return std::unexpected(set.error());
    }
    if (local) {
      if (const auto bound = bind_to(*socket, *local, system); !bound)
        co_return std::unexpected(bound.error());
    }
    if (const Error error = co_await Connect(*socket, to)) co_return std::unexpected(error);
    if (!is_connected_to_itself(*socket, to)) co_return SocketStream(std::move(*socket));
    // Closing with a reset avoids TIME_WAIT, which would occupy the port.
    reset_on_close(system, socket->fd());
  }
  co_return base::failure(ECONNREFUSED);
}

}  // namespace tambour::detail::net
