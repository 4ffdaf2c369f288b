#include <tambour/connector.h>

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tambour/dns_error.h>
#include <tambour/dns_resolver.h>
#include <tambour/event_loop.h>
#include <tambour/tls.h>
#include <tambour/wait.h>
#include <tambour/when.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "client/backoff.h"
#include "client/race.h"
#include "loop/core.h"
#include "net/tcp_options.h"
#include "task/time_limit.h"

namespace tambour {
namespace {

static_assert(std::is_trivially_destructible_v<ConnectOptions>,
              "GCC 12 destroys an aggregate in braces inside co_await twice");

using client::Race;
using client::Streamed;

/// What to connect to: addresses, or a name that is still to be resolved.
struct Target {
  std::vector<Endpoint> addresses;
  std::string host{};
  std::uint16_t port = 0;
  std::vector<std::string> alpn{};  ///< With TLS: the application protocols of this end.
};

bool may_pass(const Error& error, const Target& target) noexcept {
  if (error.category() == resolver_category()) return error.value() == EAI_AGAIN;
  if (error.category() == dns_category()) return error == DnsError::too_many_lookups;
  // A Unix server that restarts removes its path and creates it again.
  const auto is_unix = [](const Endpoint& each) { return !each.is_ip(); };
  if (error.value() == ENOENT) return std::ranges::any_of(target.addresses, is_unix);
  constexpr int lasting[] = {EINVAL, EACCES, EPERM, EAFNOSUPPORT, ECANCELED};
  return std::ranges::find(lasting, error.value()) == std::end(lasting);
}

/// Parses "name:port".
std::optional<Target> parse_name(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  const auto port = base::parse_number<std::uint16_t>(text.substr(colon + 1));
  if (host.find_first_of(":[]") != std::string_view::npos) return std::nullopt;
  if (!port || *port == 0) return std::nullopt;
  return Target{.addresses = {}, .host = std::string(host), .port = *port};
}

Target host_target(std::string host, std::uint16_t port) {
  // Without a host there is no address either, which fails with EINVAL.
  if (port == 0) host.clear();
  return {.addresses = {}, .host = std::move(host), .port = port};
}

Task<Streamed> try_once(Target target, ConnectOptions options) {
  const TaskContext& context = co_await this_task;
  Race race(*context.loop, context.stop, options);
  if (target.host.empty()) {
    race.use(target.addresses);
  } else {
    Resolver& resolver =
        options.resolver != nullptr ? *options.resolver : DnsResolver::of(*context.loop);
    race.look_up(resolver, std::move(target.host), target.port, std::move(target.alpn));
  }
  co_return co_await race.run();
}

Task<Streamed> try_rounds(Target target, ConnectOptions options) {
  const TaskContext& context = co_await this_task;
  client::Backoff backoff(options.retry_delay, options.retry_delay_max);
  for (unsigned round = 1;; ++round) {
    auto stream = co_await try_once(target, options);
    if (stream || round >= options.attempts_max || !may_pass(stream.error(), target))
      co_return stream;
    const Duration delay = backoff.next(loop::core_of(*context.loop).backend().random());
    if (auto slept = co_await sleep_for(delay); !slept) co_return std::unexpected(slept.error());
  }
}

Task<Streamed> connect_within(Target target, ConnectOptions options) {
  const Duration limit = options.timeout;
  Streamed stream = co_await task::within(limit, try_rounds(std::move(target), options));
  const TcpOptions& tcp = options.tcp;
  const bool any_option =
      tcp.keepalive_idle > Duration::zero() || tcp.user_timeout > Duration::zero();
  if (!stream || !any_option) co_return stream;
  // A stream to a Unix endpoint has no TCP options.
  if (const auto peer = stream->peer_endpoint(); peer && peer->is_ip()) {
    backend::System& system = loop::core_of(stream->loop()).backend().system();
    if (auto set = net::set_tcp_options(system, stream->descriptor(), tcp); !set)
      co_return std::unexpected(set.error());
  }
  co_return stream;
}

}  // namespace

Task<Result<SocketStream>> connect(std::vector<Endpoint> addresses, ConnectOptions options) {
  return connect_within({.addresses = std::move(addresses)}, options);
}

Task<Result<SocketStream>> connect(std::string to, ConnectOptions options) {
  // A coroutine, so that a parse error is also returned through the task's result.
  auto literal = Endpoint::parse(to);
  std::optional<Target> target;
  if (literal) {
    target = Target{.addresses = {*literal}};
  } else {
    target = parse_name(to);
  }
  if (!target) co_return base::failure(EINVAL);
  co_return co_await connect_within(std::move(*target), options);
}

Task<Result<SocketStream>> detail::connect_to_host(std::string host, std::uint16_t port,
                                                   ConnectOptions options) {
  return connect_within(host_target(std::move(host), port), options);
}

Task<Result<SocketStream>> detail::connect_with_tls(std::string host, std::uint16_t port,
                                                    TlsClientContext tls, ConnectOptions options) {
  Target target = host_target(host, port);
  if (options.https_records && tls) target.alpn = tls.alpn();
  auto stream = co_await connect_within(std::move(target), options);
  if (!stream) co_return stream;
  const auto secured = co_await tls_connect(*stream, std::move(tls), std::move(host));
  if (!secured) co_return std::unexpected(secured.error());
  co_return stream;
}

Task<Result<SocketStream>> detail::connect_with_tls(std::string to, TlsClientContext tls,
                                                    ConnectOptions options) {
  const auto literal = Endpoint::parse(to);
  if (literal && literal->is_ip()) {
    std::string host = literal->to_string();
    host.erase(host.rfind(':'));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    const std::uint16_t port = literal->port();
    co_return co_await connect_with_tls(std::move(host), port, std::move(tls), options);
  }
  auto target = literal ? std::nullopt : parse_name(to);
  if (!target) co_return base::failure(EINVAL);
  co_return co_await connect_with_tls(std::move(target->host), target->port, std::move(tls),
                                      options);
}

}  // namespace tambour
