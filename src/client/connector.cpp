// connect(): one attempt after the other, each of names, addresses, a proxy and TLS.
#include <tambour/net/connector.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tambour/dns/resolver.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>
#include <tambour/tls/handshake.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "client/may_pass.h"
#include "client/proxy.h"
#include "client/proxy_context.h"
#include "client/race.h"
#include "client/retry_delays.h"
#include "http_message/protocol_name.h"
#include "loop/core.h"
#include "net/tcp_options.h"
#include "task/time_limit.h"

namespace tambour {
namespace {

static_assert(!std::is_aggregate_v<ConnectOptions>,
              "GCC 12 destroys an aggregate in braces inside co_await twice");
static_assert(std::is_trivially_destructible_v<RetryPolicy>);

using detail::client::ProxyServer;
using detail::client::Race;

/// What to connect to: addresses, or a name that is still to be resolved.
struct Target {
  std::vector<Endpoint> addresses{};
  std::string host{};
  std::uint16_t port = 0;

  [[nodiscard]] bool is_unix() const noexcept {
    return std::ranges::any_of(addresses, [](const Endpoint& at) { return !at.is_ip(); });
  }
};

/// Parses "name:port".
std::optional<Target> parse_name(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  const auto port = detail::base::parse_number<std::uint16_t>(text.substr(colon + 1));
  if (host.find_first_of(":[]") != std::string_view::npos) return std::nullopt;
  if (!port || *port == 0) return std::nullopt;
  return Target{.host = std::string(host), .port = *port};
}

/// Applies the local address, and returns what is wrong.
Error prepare(const Target& target, ConnectOptions& options) {
  if (target.addresses.empty() && (target.host.empty() || target.port == 0))
    return system_error(EINVAL);
  // Nothing else says which server it must be.
  if (options.tls && options.tls_host.empty() && target.is_unix()) return system_error(EINVAL);
  if (!options.local) return {};
  const int family = options.local->family();
  const bool uses_names = !target.host.empty() || (options.proxy && !target.is_unix());
  if (uses_names) {
    if (!options.local->is_ip()) return system_error(EAFNOSUPPORT);
    const auto only = family == AF_INET6 ? AddressFamily::v6 : AddressFamily::v4;
    if (options.family != AddressFamily::any && options.family != only)
      return system_error(EAFNOSUPPORT);
    options.family = only;
    return {};
  }
  const auto has_family = [&](const Endpoint& at) { return at.family() == family; };
  return std::ranges::any_of(target.addresses, has_family) ? Error() : system_error(EAFNOSUPPORT);
}

bool may_pass(const Error& error, const Target& target) noexcept {
  // A Unix server that restarts removes its path and creates it again; its backlog may be full.
  if (target.is_unix() && (error == system_error(ENOENT) || error == system_error(EAGAIN)))
    return true;
  return detail::client::may_pass(error);
}

Result<> set_tcp_options(SocketStream& stream, const TcpOptions& options) noexcept {
  const bool any_option =
      options.keepalive_idle > Duration::zero() || options.user_timeout > Duration::zero();
  if (!any_option) return {};
  // A stream to a Unix endpoint has no TCP options.
  const auto peer = stream.peer_endpoint();
  if (!peer || !peer->is_ip()) return {};
  detail::backend::System& system = detail::loop::core_of(stream.loop()).backend().system();
  return detail::net::set_tcp_options(system, stream.fd(), options);
}

std::string proxy_of(const Target& target, const ConnectOptions& options) {
  if (!options.proxy || target.is_unix()) return {};
  if (target.addresses.empty())
    return options.proxy(ProxyTarget{.host = target.host, .port = target.port});
  const Endpoint& first = target.addresses.front();
  return options.proxy(ProxyTarget{.host = first.address(), .port = first.port()});
}

/// The first address that answers.
Task<ConnectResult> reach(Target target, const ConnectOptions& options, ConnectStep& step) {
  const TaskContext& context = co_await this_task;
  step = target.host.empty() ? ConnectStep::connect : ConnectStep::resolve;
  if (options.local) {
    const int family = options.local->family();
    std::erase_if(target.addresses, [&](const Endpoint& at) { return at.family() != family; });
    if (target.host.empty() && target.addresses.empty())
      co_return std::unexpected<ConnectError>(system_error(EAFNOSUPPORT));
  }
  Race race(*context.loop, context.stop, options, step);
  if (target.host.empty()) {
    race.use(target.addresses);
  } else {
    Resolver& resolver =
        options.resolver != nullptr ? *options.resolver : dns::Resolver::of(*context.loop);
    std::vector<std::string> alpn;
    if (options.https_records && options.tls) alpn = options.tls.alpn();
    race.look_up(resolver, std::move(target.host), target.port, std::move(alpn));
  }
  auto stream = co_await race.run();
  if (!stream) co_return stream;
  if (const auto set = set_tcp_options(*stream, options.tcp); !set)
    co_return std::unexpected<ConnectError>(set.error());
  co_return stream;
}

/// The proxy, with TLS if it speaks that.
Task<ConnectResult> reach_proxy(const ProxyServer& proxy, const ConnectOptions& options,
                                ConnectStep& step) {
  ConnectOptions to_proxy = options;
  to_proxy.https_records = false;
  to_proxy.srv_service.clear();
  Target at;
  at.host = proxy.host;
  at.port = proxy.port;
  ConnectStep ignored = step;
  auto stream = co_await reach(std::move(at), to_proxy, ignored);
  if (!stream) co_return std::unexpected(ConnectError(stream.error(), step));
  if (proxy.kind == ProxyServer::Kind::https) {
    auto context = detail::client::proxy_context(options);
    if (!context) co_return std::unexpected<ConnectError>(context.error());
    const auto secured = co_await tls::connect(*stream, std::move(*context), proxy.host);
    if (!secured) co_return std::unexpected<ConnectError>(secured.error());
    // CONNECT is written as HTTP/1.1.
    const std::string_view alpn = stream->tls()->alpn();
    if (const auto spoken = http::protocol_named(alpn, http::Http2Support::none);
        !alpn.empty() && !spoken)
      co_return std::unexpected<ConnectError>(spoken.error());
  }
  co_return stream;
}

/// The target, through a proxy.
Task<ConnectResult> reach_through(std::string url, const Target& target,
                                  const ConnectOptions& options, ConnectStep& step) {
  const TaskContext& context = co_await this_task;
  step = ConnectStep::proxy;
  auto proxy = detail::client::parse_proxy(url);
  if (!proxy) co_return std::unexpected<ConnectError>(proxy.error());
  const bool uses_digest =
      proxy->is_http() && options.proxy_authentication == http::Authentication::digest;
  if (uses_digest) proxy->authorization.clear();
  ServiceTarget server;
  server.host = target.host.empty() ? target.addresses.front().address() : target.host;
  server.port = target.host.empty() ? target.addresses.front().port() : target.port;
  for (bool has_answered = false;; has_answered = true) {
    auto stream = co_await reach_proxy(*proxy, options, step);
    if (!stream) co_return stream;
    const auto opened =
        co_await detail::client::open_tunnel(*stream, *proxy, server.host, server.port);
    if (opened) co_return ConnectedStream(std::move(*stream), std::move(server), std::move(url));
    auto& backend = detail::loop::core_of(*context.loop).backend();
    const std::array<std::uint64_t, 2> random{backend.random(), backend.random()};
    // Many proxies close the connection after a 407.
    if (!uses_digest || has_answered || !proxy->challenge ||
        !detail::client::answer_challenge(*proxy, server.host, server.port, random))
      co_return std::unexpected<ConnectError>(opened.error());
  }
}

/// The name that the server must prove.
std::string tls_host_of(const Target& target, const ConnectOptions& options,
                        const ConnectedStream& stream) {
  if (!options.tls_host.empty()) return options.tls_host;
  if (!target.host.empty()) return target.host;
  if (!stream.proxy().empty()) return stream.server().host;
  const auto peer = stream.peer_endpoint();
  return peer ? peer->address() : std::string();
}

Task<ConnectResult> try_once(const Target& target, const ConnectOptions& options,
                             ConnectStep& step) {
  std::string proxy = proxy_of(target, options);
  Task<ConnectResult> reaching = proxy.empty()
                                     ? reach(target, options, step)
                                     : reach_through(std::move(proxy), target, options, step);
  auto stream = co_await std::move(reaching);
  if (!stream || !options.tls) co_return stream;
  step = ConnectStep::tls;
  std::string host = tls_host_of(target, options, *stream);
  const std::uint16_t port = stream->proxy().empty() ? 0 : stream->server().port;
  Task<Result<>> securing = tls::connect(*stream, options.tls, {std::move(host), port});
  const auto secured = co_await std::move(securing);
  if (!secured) co_return std::unexpected<ConnectError>(secured.error());
  co_return stream;
}

Task<ConnectResult> try_rounds(const Target& target, const ConnectOptions& options,
                               ConnectStep& step) {
  const TaskContext& context = co_await this_task;
  detail::client::RetryDelays delays(options.retry);
  for (unsigned round = 1;; ++round) {
    auto stream = co_await try_once(target, options, step);
    if (stream || round >= options.retry.attempts_max || !may_pass(stream.error(), target))
      co_return stream;
    const Duration delay = delays.next(detail::loop::core_of(*context.loop).backend().random());
    const auto slept = co_await sleep_for(delay, {});
    if (!slept) co_return std::unexpected<ConnectError>(slept.error());
  }
}

Task<ConnectResult> connect_within(Target target, ConnectOptions options) {
  ConnectStep step = ConnectStep::arguments;
  if (const Error wrong = prepare(target, options))
    co_return std::unexpected(ConnectError(wrong, step));
  auto trying = detail::task::within(options.timeout, try_rounds(target, options, step));
  auto stream = co_await std::move(trying);
  if (!stream && stream.error().step() == ConnectStep::none)
    stream = std::unexpected(ConnectError(stream.error(), step));
  co_return stream;
}

}  // namespace

Result<tls::ClientContext> detail::client::proxy_context(const ConnectOptions& options) {
  if (options.proxy_tls) return options.proxy_tls;
  struct Shared {
    std::mutex mutex;
    tls::ClientContext context;
  };
  // Never destroyed: threads may connect while the program exits.
  static auto* const shared = new Shared;
  const std::lock_guard lock(shared->mutex);
  if (!shared->context) {
    auto created = tls::ClientContext::create();
    if (!created) return std::unexpected(created.error().error);
    shared->context = std::move(*created);
  }
  return shared->context;
}

ConnectOptions::ConnectOptions() noexcept = default;
ConnectOptions::ConnectOptions(tls::ClientContext context) noexcept : tls(std::move(context)) {}

const char* to_string(ConnectStep step) noexcept {
  switch (step) {
    case ConnectStep::none:
      break;
    case ConnectStep::arguments:
      return "arguments of connect()";
    case ConnectStep::resolve:
      return "resolving the name";
    case ConnectStep::connect:
      return "connecting";
    case ConnectStep::proxy:
      return "proxy";
    case ConnectStep::tls:
      return "TLS handshake";
  }
  return "";
}

std::string ConnectError::describe() const {
  if (step_ == ConnectStep::none) return message();
  return std::string(to_string(step_)) + ": " + message();
}

Task<ConnectResult> connect(std::vector<Endpoint> addresses, ConnectOptions options) {
  Target target;
  target.addresses = std::move(addresses);
  return connect_within(std::move(target), std::move(options));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as the other overloads.
Task<ConnectResult> connect(std::string to, ConnectOptions options) {
  Target target;
  if (const auto literal = Endpoint::parse(to)) {
    target.addresses.push_back(*literal);
  } else if (auto named = parse_name(to)) {
    target = std::move(*named);
  }
  // Otherwise the target is empty, which is an error of the task.
  return connect_within(std::move(target), std::move(options));
}

Task<ConnectResult> detail::connect_to_host(std::string host, std::uint16_t port,
                                            ConnectOptions options) {
  Target target;
  target.host = std::move(host);
  target.port = port;
  return connect_within(std::move(target), std::move(options));
}

}  // namespace tambour
