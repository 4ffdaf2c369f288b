// Connecting to host names: address selection, per-attempt delays and retries.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/clock.h>
#include <tambour/endpoint.h>
#include <tambour/resolver.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>
#include <tambour/tcp_options.h>
#include <tambour/tls_context.h>

#pragma GCC visibility push(default)

namespace tambour {

struct ConnectOptions {
  /// How long to wait for one address before the next is tried in parallel: RFC 8305, section 5.
  Duration attempt_delay = std::chrono::milliseconds(250);

  /// If the IPv4 addresses of a name are known first, how long to wait for its IPv6 addresses
  /// before the first attempt: RFC 8305, section 3. Attempts start at once when the IPv6 addresses
  /// are known, and use those that become known later.
  Duration resolution_delay = std::chrono::milliseconds(50);

  /// The time limit for the whole operation, including name lookups and retries. 0: no limit.
  Duration timeout = std::chrono::seconds(30);

  /// How often all addresses are tried, at least once. Names are looked up in each round. Errors
  /// that cannot change within that time (a host name that does not exist, EACCES) are not retried.
  /// A Unix path that does not exist is: a server that restarts creates its path again.
  unsigned attempts_max = 1;

  /// The delay before the second round; it doubles with each further round up to `retry_delay_max`.
  /// The actual delay is a random value between half and all of it, so that the clients of a server
  /// that was down do not reconnect at the same moment. Negative values count as zero.
  Duration retry_delay = std::chrono::milliseconds(100);
  Duration retry_delay_max = std::chrono::seconds(10);

  AddressFamily family = AddressFamily::any;

  /// Follows the HTTPS records of the host: RFC 9460. They name other hosts and ports, which are
  /// tried first, in the order of their priorities; then the host itself. Their address hints are
  /// used until the addresses are known. If the addresses of the host are known first, the records
  /// are waited for as long as `resolution_delay`. With TLS, servers that support no protocol of
  /// TlsOptions::alpn are not used, and the server must still prove to be the host.
  bool https_records = false;
  /// If not empty, for example "_imaps._tcp": follows the SRV records of this service of the host,
  /// RFC 2782. If there are none, connects to the host and port. Fails with DnsError::no_service if
  /// the host declares that it does not offer the service. Must outlive the task.
  std::string_view srv_service{};
  /// If not null, is set to the server that the connection was made to, with the protocols that its
  /// HTTPS record names. Must outlive the task.
  ServiceEndpoint* connected_to = nullptr;

  /// Null: DnsResolver::of() the loop of the task. Must outlive the task.
  Resolver* resolver = nullptr;

  /// Set on the connected stream. By default all are zero, which sets none.
  TcpOptions tcp{};
};

/// Connects to the first of `addresses` that answers, by Happy Eyeballs (RFC 8305): the address
/// families alternate, starting with that of the first address; the next address is tried when an
/// attempt has failed, or has not succeeded for `attempt_delay`. The first connection wins; the
/// other attempts are cancelled and their sockets closed.
///
/// The result is a SocketStream, because the endpoint determines whether it is a TCP stream (with
/// TCP_NODELAY, as with TcpStream::connect()) or a Unix-domain stream. For the functions of the
/// derived class, move the stream: `UnixStream local(std::move(*stream));`.
///
/// If no address answers, fails with the error of the attempt that failed last. Fails with
/// ETIMEDOUT if `timeout` has passed, with ECANCELED if the task was asked to stop, and with EINVAL
/// if `addresses` is empty.
[[nodiscard]] Task<Result<SocketStream>> connect(std::vector<Endpoint> addresses,
                                                 ConnectOptions options = {});

/// Connects to any text that Endpoint::parse() accepts, for example "192.0.2.1:80" or
/// "unix:/run/server.sock", or to a host name and a port: "example.org:80". Fails with EINVAL if
/// the text is neither, with the errors of the resolver, and with those above. Do not pass
/// untrusted input, which may name a Unix socket: use the overload below.
[[nodiscard]] Task<Result<SocketStream>> connect(std::string to, ConnectOptions options = {});

namespace detail {
[[nodiscard]] Task<Result<SocketStream>> connect_to_host(std::string host, std::uint16_t port,
                                                         ConnectOptions options);
[[nodiscard]] Task<Result<SocketStream>> connect_with_tls(std::string to, TlsClientContext tls,
                                                          ConnectOptions options);
[[nodiscard]] Task<Result<SocketStream>> connect_with_tls(std::string host, std::uint16_t port,
                                                          TlsClientContext tls,
                                                          ConnectOptions options);
}  // namespace detail

/// Connects to a host name or a numeric address (IPv6 without brackets), never to a Unix socket:
/// `host` may be untrusted. Fails with EINVAL if `host` is empty or `port` is not between 1 and
/// 65535, with the errors of the resolver, and with those above.
///
/// A template, so that `{}` as the second argument means options and not port 0, and so that a port
/// that is out of range is an error and not truncated.
template <std::integral Port>
[[nodiscard]] Task<Result<SocketStream>> connect(std::string host, Port port,
                                                 ConnectOptions options = {}) {
  const bool is_port = std::in_range<std::uint16_t>(port);
  return detail::connect_to_host(std::move(host), is_port ? static_cast<std::uint16_t>(port) : 0,
                                 options);
}

/// Connects to a host name or a numeric address, and performs the TLS handshake of a client: the
/// server proves that it is `host`. The time limit of the handshake, TlsOptions::handshake_timeout,
/// begins when the connection is made. Fails with the errors of the overload above and of
/// tls_connect(). Another address is not tried if the handshake fails.
///
///   auto stream = co_await connect("example.org", 443, tls);
template <std::integral Port, std::same_as<TlsClientContext> Context>
[[nodiscard]] Task<Result<SocketStream>> connect(std::string host, Port port, Context tls,
                                                 ConnectOptions options = {}) {
  const bool is_port = std::in_range<std::uint16_t>(port);
  return detail::connect_with_tls(std::move(host), is_port ? static_cast<std::uint16_t>(port) : 0,
                                  std::move(tls), options);
}

/// The same for "example.org:443", "192.0.2.1:443" or "[2001:db8::1]:443". Fails with EINVAL for a
/// Unix endpoint, which has no name that the server could prove: see tls_connect().
template <std::same_as<TlsClientContext> Context>
[[nodiscard]] Task<Result<SocketStream>> connect(std::string to, Context tls,
                                                 ConnectOptions options = {}) {
  return detail::connect_with_tls(std::move(to), std::move(tls), options);
}

}  // namespace tambour

#pragma GCC visibility pop
