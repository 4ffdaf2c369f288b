// The options of all stream servers: TcpServer, UnixServer and the servers over a group of loops.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/net/bind_options.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/tcp_options.h>
#include <tambour/tls/context.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Which loop of a group serves a connection.
enum class Placement : std::uint8_t {
  /// Each loop listens, and the kernel chooses one by a hash of both addresses (SO_REUSEPORT,
  /// socket(7)). No loop depends on another, but a small number of connections may be distributed
  /// unevenly. Fails with EOPNOTSUPP for Unix names.
  kernel,
  /// Like `kernel`, but selects the loop on the processor that received the connection, so that its
  /// data stays in that processor's caches (SO_ATTACH_REUSEPORT_CBPF). Fails with EINVAL if the
  /// threads of the group are not pinned.
  processor,
  /// The first loop listens and distributes connections round-robin.
  round_robin,
  /// The first loop listens; all connections from one IP address go to the same loop, whatever
  /// their ports. If the PROXY protocol is required, the address is the one in the header.
  peer_address,
  /// The first loop listens; each connection goes to the loop with the least load:
  /// LoopGroup::least_loaded().
  least_loaded,
};

/// Whether each stream starts with a PROXY protocol header (net/proxy_protocol.h). If it is
/// required, only trusted proxies must be able to reach the server, because any client that can
/// connect can claim any source address.
enum class ProxyProtocol : std::uint8_t { off, required };

/// The listener of a server has failed, for example because another process that shares it has shut
/// it down. The server accepts no more connections from it; its connections are not affected.
class ListenerError final : public std::system_error {
 public:
  /// An error of the listener at `at`.
  ListenerError(const Error& error, const Endpoint& at)
      : std::system_error(error, "listener at " + at.to_string()), endpoint_(at) {}
  /// The endpoint of the listener.
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  Endpoint endpoint_;
};

/// How a server listens and accepts, and its limits. A server over a group of loops shares the
/// functions among its loops: several threads invoke them concurrently, each for its own
/// connections.
struct ListenOptions {
  /// For a server over a group of loops; default: Placement::kernel. A server on one loop fails
  /// with EINVAL if it is set.
  std::optional<Placement> placement{};
  int backlog = 4096;  ///< Of each listener: listen(2); capped at the system's somaxconn.
  /// SO_REUSEPORT: several listeners on one endpoint. Always set if each loop of a group listens.
  bool reuse_port = false;
  bool v6_only = false;  ///< IPV6_V6ONLY.
  BindOptions bind{};    ///< The interface, transparent and foreign addresses.
  /// The maximum number of concurrent connections, of all loops together; further ones wait in the
  /// backlog. If each loop of a group listens, each has an equal share, of at least one. Default:
  /// seven eighths of the file descriptors that the process may open (RLIMIT_NOFILE: getrlimit(2))
  /// when the server is opened, less if fewer than 64 would be left for other uses, but at least
  /// half of them. Set it if a connection needs several descriptors, as in a proxy, or if the
  /// process has several servers. Servers on simulated hosts have no limit by default.
  std::optional<std::size_t> connections_max{};

  /// Permissions of the socket file of a Unix path, 0660 for example, independent of the umask; a
  /// client needs write permission to connect (unix(7)). The file never has other permissions, not
  /// even while it is created. Default: 0777 less the umask. Fails with EINVAL if the endpoint is
  /// not a Unix path, or if other bits are set. Simulated hosts have no permissions and ignore it.
  std::optional<mode_t> unix_mode{};

  /// Applies to streams that the server serves. After accept(), the caller reads the header itself,
  /// with read_proxy_header(). In a group, the loop that serves the connection reads the header;
  /// with Placement::peer_address, the loop that has accepted it does, because the header decides
  /// the placement.
  ProxyProtocol proxy_protocol = ProxyProtocol::off;
  /// The time limit for receiving the whole header. 0: no limit.
  Duration proxy_header_timeout = std::chrono::seconds(5);
  /// The maximum size of a header. A longer one is refused with EMSGSIZE as soon as its length is
  /// known, before the rest of it is read.
  std::size_t proxy_header_bytes_max = 8192;

  /// Set: the server serves TLS. The handshake follows the PROXY header, on the loop that serves
  /// the connection; handlers and connections start when it is complete. Applies to streams that
  /// the server serves. After accept(), the caller calls tls::accept() itself.
  tls::ServerContext tls{};
  /// The maximum number of unfinished handshakes on each loop. At the maximum, the oldest one is
  /// closed, so that peers that do nothing do not keep others from being served. If the server has
  /// reached connections_max and another connection waits, the oldest one on the loop that accepts
  /// is closed as soon as it has lasted 250 ms. If the first loop of a group accepts for all, those
  /// of the other loops are not closed: `tls_handshakes_max`, times the number of loops, should be
  /// less than connections_max then.
  std::size_t tls_handshakes_max = 1024;
  /// Set: a handler starts when the first early data of a client has been received, before the
  /// handshake is complete, and must observe the rules of tls/early_data.h. Connections with
  /// callbacks always start when it is complete.
  bool tls_early_data = false;

  /// Invoked for a stream that is closed without being served, with the reason: ETIMEDOUT, an error
  /// of read_proxy_header() or of tls::accept(), or, by HTTP servers,
  /// http::ErrorCode::negotiated_http_2 or negotiated_other_protocol. Runs on the loop that read
  /// the header or made the handshake. May destroy a server on one loop, but not a server over a
  /// group. The stream is open, except after tls::ErrorCode::too_many_handshakes.
  std::function<void(SocketStream&, Error)> on_rejected{};

  /// Invoked with the exceptions of handlers, of ConnectionCallbacks and of on_rejected, and with a
  /// ListenerError if a listener fails. An exception ends only its request or connection, out of
  /// memory (std::bad_alloc) too; the others, and the loop, go on. handler_exceptions() of the
  /// server counts them. Runs on the loop of the connection or listener, at the latest when the
  /// callback that has thrown returns. May destroy a server on one loop, but not a server over a
  /// group. An exception that on_error throws is thrown out of EventLoop::run(); in a group of
  /// loops, that stops the group. Does not apply to accept(), which returns its errors.
  ///
  /// If it is empty, each exception of a handler or callback is reported as one line on standard
  /// error, of at most 10 lines a second, and a ListenerError is thrown out of run(), so that a
  /// server that accepts no more connections does not go on unnoticed.
  std::function<void(std::exception_ptr)> on_error{};

  /// Set on the listener; accepted connections inherit them. Ignored for Unix-domain sockets, and
  /// for adopted listeners, which keep their own options.
  TcpOptions tcp{.keepalive_idle = std::chrono::seconds(60)};
};

namespace detail {
/// Whether a server of one protocol serves a stream after its handshake of TLS; if not, why.
using HandshakeCheck = Result<> (*)(const SocketStream& stream) noexcept;
}  // namespace detail

}  // namespace tambour

#pragma GCC visibility pop
