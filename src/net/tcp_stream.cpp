// TcpStream: connecting, and the options of TCP.
#include <tambour/net/tcp_stream.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <utility>

#include "base/failure.h"
#include "net/connect.h"
#include "net/socket_calls.h"
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

Result<> detail::net::set_tcp_options(detail::backend::System& system, int fd,
                                      const TcpOptions& options) noexcept {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const auto set = [&](int option, int value) {
    return set_option(system, fd, IPPROTO_TCP, option, value);
  };
  if (options.user_timeout > Duration::zero()) {
    const int timeout = rounded_up<milliseconds>(options.user_timeout);
    if (auto done = set(TCP_USER_TIMEOUT, timeout); !done) return done;
  }
  if (options.keepalive_idle <= Duration::zero()) return {};
  const int idle = rounded_up<seconds>(options.keepalive_idle);
  if (auto done = set(TCP_KEEPIDLE, idle); !done) return done;
  if (options.keepalive_interval > Duration::zero()) {
    const int interval = rounded_up<seconds>(options.keepalive_interval);
    if (auto done = set(TCP_KEEPINTVL, interval); !done) return done;
  }
  if (options.keepalive_count > 0) {
    if (auto done = set(TCP_KEEPCNT, options.keepalive_count); !done) return done;
  }
  return set_option(system, fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Result<> TcpStream::set_tcp_options(const TcpOptions& options) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::set_tcp_options(system(), fd(), options);
}

Result<> TcpStream::set_no_delay(bool no_delay) noexcept {
  return set_option(IPPROTO_TCP, TCP_NODELAY, no_delay ? 1 : 0);
}

Task<Result<TcpStream>> TcpStream::connect(Endpoint to) {
  if (!supports(to)) co_return detail::base::failure(EAFNOSUPPORT);
  auto connected = co_await detail::net::connect_stream(to);
  if (!connected) co_return std::unexpected(connected.error());
  TcpStream stream(std::move(*connected));
  static_cast<void>(stream.set_no_delay(true));
  co_return stream;
}

}  // namespace tambour
