// Connecting: names, Happy Eyeballs, proxies, TLS, a time limit and retries, for every protocol.
//
//   ConnectOptions options;
//   options.tls = tls;
//   options.timeout = 5s;
//   auto stream = co_await connect("example.org", 443, options);
//   if (!stream) std::puts(stream.error().describe().c_str());
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/http/auth.h>
#include <tambour/net/bind_options.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/proxy.h>
#include <tambour/net/resolver.h>
#include <tambour/net/retry_policy.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/tcp_options.h>
#include <tambour/task/task.h>
#include <tambour/tls/context.h>

#pragma GCC visibility push(default)

namespace tambour {

/// How to connect. Not an aggregate: GCC 12 destroys the members of an aggregate that is written in
/// braces inside a co_await expression twice. Assign the members instead.
struct ConnectOptions {
  ConnectOptions() noexcept;
  /// With TLS, and otherwise the defaults: `connect("example.org", 443, tls)`.
  ConnectOptions(tls::ClientContext context) noexcept;  // NOLINT(google-explicit-constructor)

  /// If not empty, performs the TLS handshake of a client with the server.
  tls::ClientContext tls{};
  /// The name or address that the server must prove to have, and that is sent to it (SNI). Empty:
  /// the host of the call, or the address that is connected to. A Unix endpoint has neither.
  std::string tls_host{};

  /// Chooses a proxy for everything but Unix endpoints. See net/proxy.h.
  ProxyChoice proxy{};
  /// For proxies whose URL begins with "https". If empty, a context with the certificates of the
  /// system is created when it is needed, which reads files.
  tls::ClientContext proxy_tls{};

  /// How the user and the password in the URL of a proxy of HTTP are sent. With `digest`, if the
  /// proxy refuses a connection with 407, it is opened once more. If the proxy offers only Basic,
  /// connecting fails with ProxyError::authentication_required.
  http::Authentication proxy_authentication = http::Authentication::basic;

  /// The local address of the socket: bind(2). With port 0 the kernel chooses the port. Only
  /// addresses of its family are connected to. With a proxy, it is used for the connection to it.
  std::optional<Endpoint> local{};
  /// The network interface, and whether `local` may be an address that this machine does not have.
  /// Ignored for Unix endpoints.
  BindOptions bind{};

  /// The time limit for the whole operation: name lookups, attempts, the answers of a proxy, TLS
  /// handshakes and retries. 0: no limit. Handshakes have the limit of their context as well.
  Duration timeout = std::chrono::seconds(30);

  /// How often all of it is attempted. Errors that cannot change within that time are not retried:
  /// a host name that does not exist, EACCES, a certificate that is not valid. A Unix path that
  /// does not exist is: a server that restarts creates its path again.
  RetryPolicy retry{};

  /// How long to wait for one address before the next is tried in parallel: RFC 8305, section 5.
  Duration attempt_delay = std::chrono::milliseconds(250);
  /// If the IPv4 addresses of a name are known first, how long to wait for its IPv6 addresses
  /// before the first attempt: RFC 8305, section 3. Attempts start at once when the IPv6 addresses
  /// are known, and use those that become known later.
  Duration resolution_delay = std::chrono::milliseconds(50);

  AddressFamily family = AddressFamily::any;

  /// Follows the HTTPS records of the host: RFC 9460. They name other hosts and ports, which are
  /// tried first, in the order of their priorities; then the host itself. Their address hints are
  /// used until the addresses are known. If the addresses of the host are known first, the records
  /// are waited for as long as `resolution_delay`. With TLS, servers that support no protocol of
  /// tls::Options::alpn are not used, and the server must still prove to be the host. No effect
  /// with a proxy, which resolves the name.
  bool https_records = false;
  /// If not empty, for example "_imaps._tcp": follows the SRV records of this service of the host,
  /// RFC 2782. If there are none, connects to the host and port. Fails with
  /// dns::ErrorCode::no_service if the host declares that it does not offer the service. No effect
  /// with a proxy.
  std::string srv_service{};

  /// Null: dns::Resolver::of() the loop of the task. Must outlive the task.
  Resolver* resolver = nullptr;

  /// Set on the connected stream. By default all are zero, which sets none.
  TcpOptions tcp{};
};

/// The parts of connecting, in their order.
enum class ConnectStep : std::uint8_t {
  none,       ///< The error is not one of connect(): a time limit of its caller, for example.
  arguments,  ///< The host, the port, the text or the options are wrong.
  resolve,    ///< Looking up the name.
  connect,    ///< Connecting to the addresses.
  proxy,      ///< Connecting to the proxy, its TLS handshake, and what it answers.
  tls,        ///< The TLS handshake with the server.
};

/// The name of a step for messages: "TLS handshake" and so on.
[[nodiscard]] const char* to_string(ConnectStep step) noexcept;

/// An Error, with the step that has failed. Compares and converts like an Error.
class ConnectError : public Error {
 public:
  ConnectError() noexcept = default;
  /// An error of a step.
  ConnectError(const Error& error,  // NOLINT(google-explicit-constructor): as a Result has it.
               ConnectStep step = ConnectStep::none) noexcept
      : Error(error), step_(step) {}

  /// The step that has failed; ConnectStep::none if it is not known.
  [[nodiscard]] ConnectStep step() const noexcept { return step_; }
  /// The message, after the step: "connecting: Connection refused". Throws std::bad_alloc.
  [[nodiscard]] std::string describe() const;

 private:
  ConnectStep step_ = ConnectStep::none;
};

/// A stream that connect() has made: a SocketStream of any family, and how it was reached.
///
/// For the functions of the derived classes, move it: `UnixStream local(std::move(*stream));`.
class ConnectedStream : public SocketStream {
 public:
  ConnectedStream() = default;
  /// For code that connects in another way, such as tests.
  explicit ConnectedStream(SocketStream stream, ServiceTarget server = {},
                           std::string proxy = {}) noexcept
      : SocketStream(std::move(stream)), server_(std::move(server)), proxy_(std::move(proxy)) {}

  /// The server that a name has led to: the host itself, or one that its SRV or HTTPS records name,
  /// with its protocols. The host is empty if addresses were connected to.
  [[nodiscard]] const ServiceTarget& server() const noexcept { return server_; }
  /// The URL of the proxy, with its credentials; empty: none.
  [[nodiscard]] const std::string& proxy() const noexcept { return proxy_; }

 private:
  ServiceTarget server_;
  std::string proxy_;
};

namespace detail {
template <>
inline constexpr bool is_stream_of_any_family<ConnectedStream> = true;
}  // namespace detail

/// What connect() returns.
using ConnectResult = Result<ConnectedStream, ConnectError>;

/// Connects to the first of `addresses` that answers, by Happy Eyeballs (RFC 8305): the address
/// families alternate, starting with that of the first address; the next address is tried when an
/// attempt has failed, or has not succeeded for `attempt_delay`. The first connection wins; the
/// other attempts are cancelled and their sockets closed. TCP streams have TCP_NODELAY, as with
/// TcpStream::connect(). A proxy is asked for the first address only.
///
/// If no address answers, fails with the error of the attempt that failed last. Fails with the
/// errors of the proxy (ProxyError) and of TLS (tls::ErrorCode), with ETIMEDOUT if `timeout` has
/// passed, with ECANCELED if the task was asked to stop, and with EINVAL if `addresses` is empty.
/// Another address is not tried if the handshake fails.
[[nodiscard]] Task<ConnectResult> connect(std::vector<Endpoint> addresses,
                                          ConnectOptions options = {});

/// Connects to any text that Endpoint::parse() accepts, for example "192.0.2.1:80" or
/// "unix:/run/server.sock", or to a host name and a port: "example.org:80". Fails with EINVAL if
/// the text is neither, with the errors of the resolver, and with those above. Do not pass
/// untrusted input, which may name a Unix socket: use the overload below.
[[nodiscard]] Task<ConnectResult> connect(std::string to, ConnectOptions options = {});

namespace detail {
[[nodiscard]] Task<ConnectResult> connect_to_host(std::string host, std::uint16_t port,
                                                  ConnectOptions options);
}  // namespace detail

/// Connects to a host name or a numeric address (IPv6 without brackets), never to a Unix socket:
/// `host` may be untrusted. Fails with EINVAL if `host` is empty or `port` is not between 1 and
/// 65535, with the errors of the resolver, and with those above.
///
/// A template, so that `{}` as the second argument means options and not port 0, and so that a port
/// that is out of range is an error and not truncated.
template <std::integral Port>
[[nodiscard]] Task<ConnectResult> connect(std::string host, Port port,
                                          ConnectOptions options = {}) {
  const bool is_port = std::in_range<std::uint16_t>(port);
  return detail::connect_to_host(std::move(host), is_port ? static_cast<std::uint16_t>(port) : 0,
                                 std::move(options));
}

}  // namespace tambour

#pragma GCC visibility pop
