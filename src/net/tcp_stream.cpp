#include <tambour/tcp_stream.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <utility>

#include "net/connect.h"
#include "net/tcp_options.h"

namespace tambour {
namespace {

/// Rounds up to whole units. A value that does not fit becomes INT_MAX, which the kernel rejects
/// with EINVAL.
template <class Unit>
int rounded_up(Duration time) noexcept {
  const auto count = std::chrono::ceil<Unit>(time).count();
  return count > INT_MAX ? INT_MAX : static_cast<int>(count);
}

}  // namespace

Result<> net::set_tcp_options(Socket& socket, const TcpOptions& options) noexcept {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  if (options.user_timeout > Duration::zero()) {
    const int timeout = rounded_up<milliseconds>(options.user_timeout);
    if (auto set = socket.set_option(IPPROTO_TCP, TCP_USER_TIMEOUT, timeout); !set) return set;
  }
  if (options.keepalive_idle <= Duration::zero()) return {};
  const int idle = rounded_up<seconds>(options.keepalive_idle);
  if (auto set = socket.set_option(IPPROTO_TCP, TCP_KEEPIDLE, idle); !set) return set;
  if (options.keepalive_interval > Duration::zero()) {
    const int interval = rounded_up<seconds>(options.keepalive_interval);
    if (auto set = socket.set_option(IPPROTO_TCP, TCP_KEEPINTVL, interval); !set) return set;
  }
  if (options.keepalive_count > 0) {
    const int count = options.keepalive_count;
    if (auto set = socket.set_option(IPPROTO_TCP, TCP_KEEPCNT, count); !set) return set;
  }
  return socket.set_option(SOL_SOCKET, SO_KEEPALIVE, 1);
}

Result<> TcpStream::set_tcp_options(const TcpOptions& options) noexcept {
  return net::set_tcp_options(*this, options);
}

Result<> TcpStream::set_no_delay(bool no_delay) noexcept {
  return set_option(IPPROTO_TCP, TCP_NODELAY, no_delay ? 1 : 0);
}

Task<Result<TcpStream>> TcpStream::connect(Endpoint to) {
  if (!supports(to)) co_return std::unexpected(system_error(EAFNOSUPPORT));
  auto socket = co_await net::connect_stream(to);
  if (!socket) co_return std::unexpected(socket.error());
  TcpStream stream(std::move(*socket));
  static_cast<void>(stream.set_no_delay(true));
  co_return stream;
}

}  // namespace tambour
