// A reverse proxy: a handler that forwards requests to other servers, its upstreams, and returns
// their responses.
//
//   http::ReverseProxyOptions options;
//   options.upstreams = {{"http://10.0.0.1:8080"}, {"http://10.0.0.2:8080"}};
//   auto proxy = or_throw(http::ReverseProxy::create(loop, std::move(options)));
//   http::Router router;
//   router.any("/{path...}", proxy.handler());
// Bodies are streamed in both directions, without buffering: a slow receiver slows down the sender.
// docs/reverse-proxy.md is a guide; docs/limits.md lists the limits. The most common mistake:
// `ServerOptions::limits` of the server also applies to proxied requests. Set `body_bytes_max` for
// uploads of more than 64 MiB.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/handler.h>
#include <tambour/http/message.h>
#include <tambour/http/status.h>
#include <tambour/net/connector.h>
#include <tambour/net/ip_address.h>

namespace tambour::http::detail::proxy {
struct State;
}

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

}  // namespace tambour

namespace tambour::http {

/// A server, or several servers with one name, to which requests are forwarded.
struct Upstream {
  /// "http://host:port", "https://host:port", or "unix:/run/server.sock". A path becomes the prefix
  /// of the paths of requests. Each address of a host name is a separate server; the name is
  /// resolved again every `ReverseProxyOptions::resolve_interval`. With "https", the certificate of
  /// the server must match the host: see ReverseProxyOptions::connect.
  std::string url{};
  /// The share of the requests, relative to other upstreams; at least 1.
  unsigned weight = 1;
};

/// How a server is chosen for a request.
enum class Balancing : std::uint8_t {
  round_robin,      ///< Weighted round robin.
  least_requests,   ///< The one with the fewest unfinished requests, relative to its weight.
  consistent_hash,  ///< By ReverseProxyOptions::hash_key: the same key, the same server.
};

/// Requests that the proxy itself makes, to detect which servers are healthy. A server counts as
/// healthy until checks have failed.
struct HealthCheckOptions {
  /// The target of the request, with the method GET. Empty: no checks.
  std::string path{};
  /// The Host field. Empty: the authority of the upstream.
  std::string host{};
  Duration interval = std::chrono::seconds(5);
  /// For the connection and the head of the response, whose status must be 2xx or 3xx.
  Duration timeout = std::chrono::seconds(2);
  /// The part of each interval that is random, from 0 to 1, so that several proxies do not check a
  /// server at the same moment.
  double jitter = 0.2;
  unsigned healthy_threshold = 2;    ///< Successes in a row that make a server healthy.
  unsigned unhealthy_threshold = 3;  ///< Failures in a row that make it unhealthy.
};

/// When a server is left out because of failed requests: passive checks. A server whose requests
/// fail gets none for a while.
struct EjectionOptions {
  /// Failures in a row, of connections and of responses that did not arrive. 0: none is ejected.
  unsigned failures_max = 5;
  /// The time of the first ejection. It doubles with each further one up to `delay_max`, until a
  /// request succeeds.
  Duration delay = std::chrono::seconds(5);
  Duration delay_max = std::chrono::minutes(5);
};

/// Which requests are sent to another server after a failure. If no connection could be opened, any
/// request is, because no byte of it was sent. Afterwards, only an idempotent request (RFC 9110,
/// section 9.2.2) without a body is, if no byte of a response has arrived.
struct UpstreamRetryOptions {
  unsigned attempts_max = 3;  ///< In total; 1: no request is repeated.
  /// How many retries there may be for each request, so that they do not overload servers that
  /// work: 0.2 means one for five requests.
  double budget = 0.2;
  /// The budget at the beginning, and its maximum, in retries.
  unsigned budget_max = 100;
  /// The statuses of responses after which an idempotent request without a body is repeated.
  std::vector<Status> statuses{};
};

/// The fields that inform a server about the client.
enum class ForwardedFields : std::uint8_t {
  none,
  x_forwarded,  ///< X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host.
  forwarded,    ///< Forwarded: RFC 7239.
  both,
};

/// The Host field that servers get.
enum class HostPolicy : std::uint8_t {
  pass,      ///< That of the client.
  upstream,  ///< The host and port of the upstream.
};

/// A request that a ReverseProxy could not forward, or whose response has not arrived.
struct ReverseProxyFailure {
  Status status{};  ///< 502, 503 or 504, which the proxy sends; 499: the client has disconnected.
  Error error{};    ///< Of the last attempt; ENOENT if no server is available.
  std::string_view upstream{};  ///< The URL of the last one; empty: none was chosen.
};

/// The upstreams of a ReverseProxy, its limits, and what it changes. A duration of zero disables a
/// time limit.
struct ReverseProxyOptions {
  /// At least one; at most 1,000.
  std::vector<Upstream> upstreams{};
  Balancing balancing = Balancing::round_robin;
  /// The key of a request for Balancing::consistent_hash. Empty function: the client's address.
  std::function<std::string(const Request&)> hash_key{};
  /// How often host names are resolved again.
  Duration resolve_interval = std::chrono::seconds(30);
  /// The maximum number of addresses of one name that are used.
  std::size_t addresses_max = 32;

  /// How connections to servers are opened: TLS, the local address, TCP options. `timeout` limits
  /// the time for one connection. `connect.tls_host` replaces the host of the upstream, for one
  /// with an address or a Unix path.
  ConnectOptions connect{};
  /// Open connections to one server; at least 1.
  std::size_t connections_max = 1024;
  /// Requests that may wait for a connection to one server. Further ones are answered with 503.
  std::size_t waiting_max = 1024;
  /// Unused connections to one server that are kept open, and for how long.
  std::size_t idle_connections_max = 64;
  Duration idle_connection_timeout = std::chrono::seconds(30);
  /// The limits of responses. Bodies have none by default.
  MessageLimits limits{.body_bytes_max = std::numeric_limits<std::uint64_t>::max()};
  /// Replaces MessageLimits::body_bytes_max of the server for the bodies of requests.
  std::optional<std::uint64_t> body_bytes_max{};

  /// How long a request waits for a connection if the pool is full; the response is then 503.
  Duration queue_timeout = std::chrono::seconds(5);
  /// From the end of the request, or the last bytes of its body, until the head of the response has
  /// arrived. The response is then 504.
  Duration head_timeout = std::chrono::seconds(60);
  /// How long a server may send nothing within the body of a response. The time in which the client
  /// does not read is not counted: see ServerOptions::write_timeout.
  Duration body_idle_timeout = std::chrono::seconds(60);
  /// From the beginning of the handler until the end of the response. It includes resolving the
  /// name of the upstream, connecting and retries.
  Duration total_timeout{};
  /// How long a tunnel (Upgrade) may transfer nothing.
  Duration tunnel_idle_timeout = std::chrono::minutes(10);

  HealthCheckOptions health_check{};
  EjectionOptions ejection{};
  UpstreamRetryOptions retry{};

  HostPolicy host = HostPolicy::pass;
  ForwardedFields forwarded_fields = ForwardedFields::x_forwarded;
  /// Proxies in front of this one. Their fields about the client (Forwarded, X-Forwarded-*) are
  /// forwarded, with their own address added; these fields of other peers are removed.
  std::vector<IpNetwork> trusted_proxies{};
  /// Whether clients on a Unix socket, which have no address, count as trusted proxies.
  bool trusts_unix_peers = false;
  /// The name of this proxy in the field Via (RFC 9110, section 7.6.3). Empty: no field.
  std::string via = "tambour";
  /// A request that has passed through more proxies, according to its field Via, gets 508. This
  /// ends forwarding loops between proxies.
  std::size_t hops_max = 16;

  /// Removed from the beginning of paths: with "/api", "/api/users" becomes "/users". Then the path
  /// of the upstream is prepended.
  std::string strip_prefix{};

  // Functions. An exception ends the request, like an exception of a handler.

  /// May change the target, the authority (Host) and the fields of the request. If it fails, the
  /// response has the status status_for(error).
  std::function<Result<>(const Request&, RequestHead& upstream_request)> modify_request{};
  /// May change the head of the response, before it is sent to the client.
  std::function<void(const Request&, ResponseHead&)> modify_response{};
  /// Returns the index in `upstreams` of the upstream for a request. If it returns no value, or an
  /// upstream that is not available, `balancing` applies.
  std::function<std::optional<std::size_t>(const Request&)> choose_upstream{};
  /// Answers a request that has failed. If it sends no response, the proxy calls
  /// Response::send_error() with the status.
  std::function<void(const Request&, Response&, const ReverseProxyFailure&)> on_error{};
};

/// The state and the counters of a server. Counters start at zero when the proxy is created.
struct UpstreamStatus {
  std::string url{};      ///< Of the Upstream.
  std::string address{};  ///< Host and port, or a Unix path.
  bool is_healthy = true;
  bool is_ejected = false;
  bool is_draining = false;
  std::size_t active = 0;       ///< Requests that are being passed on.
  std::size_t connections = 0;  ///< Open, including unused ones.
  std::uint64_t requests = 0;   ///< Attempts, retries included.
  std::uint64_t errors = 0;     ///< Attempts that have failed.
  std::uint64_t retries = 0;    ///< Attempts that were sent here after a failure elsewhere.
  std::uint64_t ejections = 0;
  std::uint64_t failed_checks = 0;
};

/// Counters of a proxy. They start at zero when it is created.
struct ReverseProxyStats {
  std::size_t active = 0;
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;  ///< Answered by the proxy: 502, 503, 504, 508.
  std::uint64_t retries = 0;
  std::uint64_t retries_refused = 0;  ///< By UpstreamRetryOptions::budget.
  std::uint64_t queue_refused = 0;    ///< By waiting_max and queue_timeout.
  std::uint64_t client_aborts = 0;    ///< Clients that disconnected before the response.
  std::uint64_t truncated = 0;        ///< Responses that were cut within their body.
  std::uint64_t tunnels = 0;
};

/// Forwards requests to upstreams.
///
/// What is forwarded: methods other than CONNECT (501) and TRACE (405), any body, trailers, the
/// responses with any status. Fields of one connection are removed (RFC 9110, section 7.6.1); "TE:
/// trailers" is kept. "Expect: 100-continue" is answered when the server has asked for the body. An
/// upgrade that the server accepts, for example to WebSocket, becomes a tunnel that supports
/// half-closed connections. Interim responses (RFC 9110, section 15.2) from 102 are forwarded.
///
/// Ownership: a handle. Its handlers may outlive it, and then answer with 503. Destroying it stops
/// the health checks and closes unused connections. Destroy it before its loop.
/// Thread: belongs to one loop, which is also that of the server whose handler it is. For a group
/// of loops, create one for each. Handlers abort with a message on another loop.
class ReverseProxy {
 public:
  /// Fails with http::ErrorCode for a URL, and with EINVAL if there is no upstream, or an option is
  /// outside its range. Names are resolved later. Throws std::bad_alloc.
  [[nodiscard]] static Result<ReverseProxy> create(EventLoop& loop, ReverseProxyOptions options);

  ReverseProxy(ReverseProxy&& other) noexcept;
  ReverseProxy& operator=(ReverseProxy&& other) noexcept;
  ~ReverseProxy();

  /// The handler for a Server or Router: `router.any("/{path...}", proxy.handler())`.
  [[nodiscard]] Handler handler();

  /// Replaces the upstreams. Servers that remain keep their connections and counters; the others
  /// complete their requests. Fails like create(); nothing changes then.
  [[nodiscard]] Result<> set_upstreams(std::vector<Upstream> upstreams);
  /// A server whose upstream drains gets no further requests. No effect if no upstream has the URL.
  void set_draining(std::string_view url, bool is_draining) noexcept;

  /// One for each server. Throws std::bad_alloc.
  [[nodiscard]] std::vector<UpstreamStatus> upstreams() const;
  [[nodiscard]] const ReverseProxyStats& stats() const noexcept;

 private:
  explicit ReverseProxy(std::shared_ptr<detail::proxy::State> state) noexcept;

  std::shared_ptr<detail::proxy::State> state_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
