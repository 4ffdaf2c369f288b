// Listener: binds, adopts, accepts and closes a listening socket; and which errors of accept(2)
// concern only one connection.
#include "server/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <tambour/base/clock.h>
#include <tambour/task/sleep.h>

#include "backend/system.h"
#include "base/failure.h"
#include "base/log/log_site.h"
#include "base/probe.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/socket_calls.h"
#include "net/stream_filter.h"
#include "net/tcp_options.h"
#include "server/capacity_event.h"

namespace tambour::detail::server {
namespace {

constexpr Duration accept_pause_max = std::chrono::milliseconds(640);
/// Many errors of connections in a row may be caused by a rule of the system (EPERM, for example),
/// which does not pass soon.
constexpr int connection_errors_in_a_row_max = 16;

class Accept final : public IoWait {
 public:
  Accept(Socket& listener, bool wait) noexcept
      : IoWait(listener, Events::read,
               wait ? detail::FirstCall::when_ready : detail::FirstCall::within_budget) {}
  [[nodiscard]] int await_resume() const noexcept { return outcome; }

 private:
  [[nodiscard]] bool step(loop::Core& core) noexcept override {
    constexpr int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    backend::System& system = core.backend().system();
    return finish(io::retry([&] { return system.accept4(fd(), nullptr, nullptr, flags); }));
  }
  [[nodiscard]] WaitKind wait_kind() const noexcept override { return WaitKind::accept; }
};

/// Returns whether accept(2) reported an error of the pending connection and not of the listener:
/// accept(2), "Error handling", "treat them like EAGAIN".
bool is_error_of_connection(int error) noexcept {
  constexpr int errors[] = {ECONNABORTED, EPROTO,     ENOPROTOOPT, EHOSTDOWN, ENONET,
                            EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, ENETDOWN,  EPERM};
  return std::ranges::find(errors, error) != std::end(errors);
}

/// Returns whether the process or the system has run out of a resource, which may be temporary.
/// ENOSPC: the limit of watches of epoll(7) is reached (max_user_watches).
bool is_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == ENOSPC;
}

Result<UnixName> bind_and_listen(backend::System& system, int fd, const Endpoint& at,
                                 const ListenOptions& options) {
  if (UnixName::is_path(at))
    return UnixName::listen(system, fd, at, options.backlog, options.unix_mode);
  if (system.bind(fd, at.data(), at.size()) != 0 || system.listen(fd, options.backlog) != 0)
    return base::failure(errno);
  return {};
}

Result<> set_ip_options(Socket& listener, int family, const ListenOptions& options,
                        bool reuse_port) {
  backend::System& system = loop::core_of(listener.loop()).backend().system();
  if (auto set = net::set_bind_options(system, listener.fd(), family, options.bind); !set)
    return set;
  // Allows binding while connections of a previous server on the port are in TIME_WAIT.
  if (auto set = listener.set_option(SOL_SOCKET, SO_REUSEADDR, 1); !set) return set;
  if (family == AF_INET6) {
    if (auto set = listener.set_option(IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0); !set)
      return set;
  }
  if (reuse_port) {
    if (auto set = listener.set_option(SOL_SOCKET, SO_REUSEPORT, 1); !set) return set;
  }
  // On Linux an accepted socket inherits TCP_NODELAY from its listener (tcp(7) does not document
  // it), so the server needs no system call for each stream. Without it, small ends of large
  // messages would be delayed.
  if (auto set = listener.set_option(IPPROTO_TCP, TCP_NODELAY, 1); !set) return set;
  return net::set_tcp_options(system, listener.fd(), options.tcp);
}

Result<int> get_option(int fd, int level, int option) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, level, option, &value, &size) != 0) return base::failure(errno);
  return value;
}

void log_pause(int error, Duration pause) noexcept {
  static constinit base::LogSite site(LogLevel::warning, "server",
                                      "accepting is paused: accept() failed");
  if (!base::LogSite::is_enabled()) return;
  try {
    site.write({{"error", system_error(error).message()},
                {"pause_ms", std::chrono::floor<std::chrono::milliseconds>(pause).count()}});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it will happen again.
  }
}

}  // namespace

Result<Listener> Listener::open(EventLoop& loop, const Endpoint& at, const ListenOptions& options,
                                bool reuse_port) {
  if (options.unix_mode && (!UnixName::is_path(at) || (*options.unix_mode & ~mode_t{0777}) != 0))
    return base::failure(EINVAL);
  auto socket = Socket::open(loop, at.family(), SOCK_STREAM);
  if (!socket) return std::unexpected(socket.error());
  if (at.is_ip()) {
    if (auto set = set_ip_options(*socket, at.family(), options, reuse_port); !set)
      return std::unexpected(set.error());
  }
  auto& system = loop::core_of(loop).backend().system();
  auto name = bind_and_listen(system, socket->fd(), at, options);
  if (!name) return std::unexpected(name.error());
  const auto local = socket->local_endpoint();
  if (!local) return std::unexpected(local.error());
  return Listener(std::move(*socket), std::move(*name), *local);
}

Result<Listener> Listener::adopt(EventLoop& loop, UniqueFd listener,
                                 bool (*supports)(const Endpoint&)) {
  const int fd = listener.get();
  const auto type = get_option(fd, SOL_SOCKET, SO_TYPE);
  const auto listens = get_option(fd, SOL_SOCKET, SO_ACCEPTCONN);
  if (!type || !listens)
    return base::failure(fd < 0 ? EBADF : (!type ? type : listens).error().value());
  if (*type != SOCK_STREAM || *listens == 0) return base::failure(EINVAL);
  // O_NONBLOCK belongs to the open file description, so it applies to other processes that share it
  // too.
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return base::failure(errno);
  Socket socket(loop, listener.release());
  const auto local = socket.local_endpoint();
  if (!local) return std::unexpected(local.error());
  if (!supports(*local)) return base::failure(EAFNOSUPPORT);
  const auto no_delay = get_option(fd, IPPROTO_TCP, TCP_NODELAY);
  Listener adopted(std::move(socket), UnixName(), *local);
  // Connections in the backlog were established before the listener could pass TCP_NODELAY on.
  adopted.sets_no_delay_ = local->is_ip() && no_delay && *no_delay == 0;
  return adopted;
}

Task<Result<SocketStream>> Listener::accept(ErrorReporter& reporter) {
  Duration pause = accept_pause_min;
  int connection_errors = 0;
  for (;;) {
    if (!socket_.is_open()) co_return base::failure(ECANCELED);
    const int outcome = co_await Accept(socket_, !in_a_row_);
    if (outcome >= 0) {
      ++accepted_;
      TAMBOUR_PROBE1(accept, outcome);
      EventLoop& loop = socket_.loop();
      const std::uint64_t iteration = loop::core_of(loop).iteration_number();
      in_a_row_ = iteration - std::exchange(accepted_in_iteration_, iteration) <= 1;
      SocketStream stream(loop, outcome);
      net::StreamMode::note_nonblocking(stream);
      if (sets_no_delay_) static_cast<void>(stream.set_option(IPPROTO_TCP, TCP_NODELAY, 1));
      co_return stream;
    }
    const bool is_of_connection = is_error_of_connection(-outcome);
    if (!is_of_connection && !is_shortage(-outcome)) co_return base::failure(outcome);
    if (!is_of_connection || ++connection_errors > connection_errors_in_a_row_max) {
      reporter.count_pause();
      log_pause(-outcome, pause);
      if (auto slept = co_await sleep_for(pause, {}); !slept)
        co_return std::unexpected(slept.error());
      pause = std::min(pause * 2, accept_pause_max);
    }
  }
}

void Listener::close() noexcept {
  if (!socket_.is_open()) return;
  backend::Backend& backend = loop::core_of(socket_.loop()).backend();
  // Before the listener is closed: no other server replaces the path while this one listens.
  name_.remove();
  // Another process may have the listener open too; closing it here does not stop it then.
  const int fd = socket_.release();
  backend.deregister(fd);
  backend.close(fd);
}

}  // namespace tambour::detail::server
