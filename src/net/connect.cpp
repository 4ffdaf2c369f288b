#include "net/connect.h"

#include <sys/socket.h>

#include <utility>

#include <tambour/event_loop.h>
#include <tambour/io_operation.h>

namespace tambour::net {
namespace {

class Connect final : public SocketWait {
 public:
  Connect(Socket& socket, const Endpoint& to) noexcept
      : SocketWait(socket, IoKind::connect, true), to_(to), size_(to.size()) {
    address = const_cast<sockaddr*>(to_.data());  // NOLINT: connect(2) reads.
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

Task<Result<Socket>> connect_stream(Endpoint to) {
  const TaskContext& context = co_await this_task;
  auto socket = Socket::open(*context.loop, to.family(), SOCK_STREAM);
  if (!socket) co_return std::unexpected(socket.error());
  if (const Error error = co_await Connect(*socket, to)) co_return std::unexpected(error);
  co_return std::move(*socket);
}

}  // namespace tambour::net
