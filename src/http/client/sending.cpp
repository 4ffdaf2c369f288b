// Requests: connecting, repeating, following redirects.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <tambour/http/date.h>
#include <tambour/net/stream_error.h>
#include <tambour/task/sleep.h>
#include <tambour/tls/error.h>

#include "base/parse_number.h"
#include "client/may_pass.h"
#include "client/proxy_context.h"
#include "client/retry_delays.h"
#include "http/client/h1_exchange.h"
#include "http/client/h2_exchange.h"
#include "http/client/redirect.h"
#include "http/client/shared.h"
#include "http/protocol.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "loop/core.h"
#include "net/stream_input.h"

namespace tambour::http::detail::client {
namespace {

using tambour::detail::client::ProxyServer;

/// How much of the body of a redirect is read so that its connection can be used again.
constexpr std::size_t discarded_bytes_max = std::size_t{64} * 1024;

/// How many challenges are answered: that of the origin and that of the proxy, and a nonce of each
/// that is too old.
constexpr int answers_max = 4;

/// How often a request is repeated that servers of HTTP/2 refuse, at once and then after pauses
/// that grow.
constexpr unsigned repetitions_max = 8;
constexpr Duration repetition_pause = std::chrono::milliseconds(10);

std::unique_ptr<Exchange> make_exchange(EventLoop& loop, Lease lease, const ReadLimits& limits,
                                        const ClientOptions& options) {
  if (lease.multiplexed() == nullptr)
    return std::make_unique<H1Exchange>(loop, std::move(lease), limits);
  return std::make_unique<H2Exchange>(loop, std::move(lease), limits,
                                      options.limits.body_bytes_max);
}

/// When the server wants to get the request again, if it has not executed it: RFC 9110, sections
/// 10.2.3 and 15.6.4, and RFC 6585, section 4.
std::optional<Duration> retry_after(const ClientResponse& response, WallTime now) {
  if (response.status() != Status::service_unavailable &&
      response.status() != Status::too_many_requests)
    return std::nullopt;
  const auto value = response.headers().get("Retry-After");
  if (!value) return std::nullopt;
  if (const auto seconds = base::parse_number<std::uint32_t>(*value))
    return std::chrono::seconds(*seconds);
  const auto date = parse_date(*value, std::chrono::floor<std::chrono::seconds>(now));
  if (!date) return std::nullopt;
  // Nanoseconds end in the year 2262.
  constexpr auto end = std::chrono::floor<std::chrono::seconds>(WallTime::max());
  return std::max(std::clamp(*date, std::chrono::sys_seconds(), end) - now, Duration::zero());
}

/// Whether the server has sent something, or has closed the connection, without a request.
bool has_spoken(Connection& connection) noexcept {
  return net::StreamInput::has_arrived(connection.stream, connection.input);
}

WallTime wall_time(EventLoop& loop) noexcept {
  return WallTime(std::chrono::nanoseconds(loop::core_of(loop).wall_ns()));
}

/// ClientOptions::origin_addresses or address; empty: the host of the origin.
std::string address_of(const Origin& origin, const ClientOptions& options) {
  if (!options.origin_addresses.empty()) {
    const auto found = options.origin_addresses.find(to_string(origin));
    if (found != options.origin_addresses.end()) return found->second;
  }
  return options.address;
}

}  // namespace

bool is_stale(const Error& error) noexcept {
  return error == StreamError::eof || error == tls::ErrorCode::truncated ||
         error == system_error(ECONNRESET) || error == system_error(EPIPE);
}

Result<tls::ClientContext> Shared::tls_context(bool needs_http_1) {
  tls::ClientContext& context = options.connect.tls ? options.connect.tls : tls_;
  if (!context) {
    tls::ClientOptions defaults;
    defaults.alpn = {"h2", "http/1.1"};
    auto created = tls::ClientContext::create(std::move(defaults));
    if (!created) return std::unexpected(created.error().error);
    context = std::move(*created);
  }
  if (!needs_http_1 && options.version == VersionChoice::negotiated) return context;
  const bool is_http_2 = !needs_http_1 && options.version == VersionChoice::http_2;
  const std::vector<std::string> offered = context.alpn();
  const bool offers_http_2 = std::ranges::find(offered, "h2") != offered.end();
  // A list without "h2", or none, is left to the program.
  if (!is_http_2 && !offers_http_2) return context;
  tls::ClientContext& restricted = is_http_2 ? http_2_tls_ : http_1_tls_;
  if (!restricted) {
    auto created = context.with_alpn({is_http_2 ? "h2" : "http/1.1"});
    if (!created) return std::unexpected(created.error().error);
    restricted = std::move(*created);
  }
  return restricted;
}

Task<ConnectResult> Shared::open(Origin origin, const ProxyServer* proxy) {
  ConnectOptions mode = options.connect;
  mode.tls = tls::ClientContext();
  mode.proxy = ProxyChoice();
  std::string address = address_of(origin, options);
  if (origin.is_secure) {
    const auto context = tls_context(origin.needs_http_1);
    if (!context) co_return std::unexpected<ConnectError>(context.error());
    mode.tls = *context;
    if (!address.empty() && mode.tls_host.empty()) mode.tls_host = origin.host;
  } else if (proxy != nullptr && proxy->is_http()) {
    // It forwards the request.
    origin.host = proxy->host;
    origin.port = proxy->port;
    mode.https_records = false;
    mode.srv_service.clear();
    mode.tls_host.clear();
    if (proxy->kind == ProxyServer::Kind::https) {
      const auto context = tambour::detail::client::proxy_context(options.connect);
      if (!context) co_return std::unexpected<ConnectError>(context.error());
      mode.tls = *context;
    }
    proxy = nullptr;
  }
  if (origin.is_unix()) {
    const auto endpoint = Endpoint::parse(origin.host);
    if (!endpoint) co_return std::unexpected<ConnectError>(endpoint.error());
    auto connecting = tambour::connect(std::vector<Endpoint>{*endpoint}, std::move(mode));
    co_return co_await std::move(connecting);
  }
  if (proxy != nullptr) mode.proxy = ProxyChoice(origin.proxy);
  // HTTPS records are those of servers that speak TLS: RFC 9460, section 9.
  if (!origin.is_secure || !address.empty()) mode.https_records = false;
  if (!address.empty()) mode.srv_service.clear();
  auto connecting = address.empty()
                        ? tambour::connect(std::move(origin.host), origin.port, std::move(mode))
                        : tambour::connect(std::move(address), std::move(mode));
  co_return co_await std::move(connecting);
}

Lease Shared::take_idle(const Origin& origin, bool is_checked) noexcept {
  for (;;) {
    Lease lease = Pool::take_idle(pool, origin);
    if (!lease || !is_checked || lease.multiplexed() != nullptr || !has_spoken(*lease.operator->()))
      return lease;
  }
}

Task<Result<Lease>> Shared::connect(Origin origin, const ProxyServer* proxy) {
  auto lease = co_await Pool::acquire(pool, origin);
  if (!lease) co_return lease;
  if (lease->is_connected()) {
    // The loop may not have noticed yet what has arrived since the last response.
    if (lease->multiplexed() != nullptr || !has_spoken(*lease->operator->())) co_return lease;
    lease->connected(nullptr);
  }
  const bool is_forwarded = proxy != nullptr && proxy->is_http() && !origin.is_secure;
  const bool speaks_http_2 = options.version != VersionChoice::http_1 && !is_forwarded;
  const bool has_prior_knowledge = options.version == VersionChoice::http_2 && speaks_http_2 &&
                                   !origin.is_secure && !origin.needs_http_1;
  const bool requires_http_2 =
      options.version == VersionChoice::http_2 && origin.is_secure && !origin.needs_http_1;
  auto stream = co_await open(std::move(origin), proxy);
  if (!stream) co_return std::unexpected<Error>(stream.error());
  const auto protocol =
      negotiated_protocol(*stream, speaks_http_2 ? Http2Support::spoken : Http2Support::none);
  if (!protocol) co_return std::unexpected(protocol.error());
  if (has_prior_knowledge || *protocol == Protocol::http_2) {
    lease->connected_multiplexed(std::move(*stream));
  } else if (requires_http_2) {
    co_return failure(http::ErrorCode::http_2_not_negotiated);
  } else {
    lease->connected(std::make_unique<Connection>(std::move(*stream), options.limits));
  }
  co_return lease;
}

Result<Shared::Destination> Shared::find_destination(Message& message) {
  Destination found{.origin = origin_of(message.url()), .proxy = {}, .may_speak_http_2 = false};
  Origin& origin = found.origin;
  // A tunnel is asked of the server that its caller has named.
  if (options.connect.proxy && !message.is_tunnel() && address_of(origin, options).empty()) {
    ProxyTarget target;
    target.scheme = origin.is_secure ? "https" : "http";
    target.host = origin.host;
    target.port = origin.port;
    origin.proxy = options.connect.proxy(target);
  }
  if (!origin.proxy.empty()) {
    auto parsed = tambour::detail::client::parse_proxy(origin.proxy);
    if (!parsed) return std::unexpected(parsed.error());
    found.proxy = std::move(*parsed);
  }
  const bool is_forwarded = found.proxy && found.proxy->is_http() && !origin.is_secure;
  message.set_forwarder(is_forwarded ? &*found.proxy : nullptr);
  if (is_forwarded && options.connect.proxy_authentication == Authentication::digest) {
    Authenticator::use_proxy(message, *found.proxy, origin.proxy);
  } else {
    message.set_proxy_identity(std::nullopt);
  }
  found.may_speak_http_2 =
      !is_forwarded && (options.version == VersionChoice::http_2 ||
                        (options.version == VersionChoice::negotiated && origin.is_secure));
  origin.needs_http_1 = found.may_speak_http_2 && (message.head().fields.contains("Upgrade") ||
                                                   pool->requires_http_1(origin));
  return found;
}

Task<Attempt> Shared::exchange(Message& message, TimePoint deadline) {
  auto destination = find_destination(message);
  if (!destination) co_return Attempt(destination.error(), false);
  Origin& origin = destination->origin;
  const ProxyServer* const proxy = destination->proxy ? &*destination->proxy : nullptr;
  if (message.is_extended_connect() && (!destination->may_speak_http_2 || origin.needs_http_1))
    co_return Attempt(Error(http::ErrorCode::no_extended_connect), false);
  const bool may_be_repeated = message.may_be_repeated();
  const bool has_source = message.has_source();
  for (unsigned repetitions = 0;;) {
    auto lease = co_await connect(origin, proxy);
    if (!lease) co_return Attempt(lease.error(), false);
    const bool is_multiplexed = lease->multiplexed() != nullptr;
    if (message.is_extended_connect() && !is_multiplexed) {
      lease->release();
      co_return Attempt(Error(http::ErrorCode::no_extended_connect), false);
    }
    const bool was_used = is_multiplexed ? lease->multiplexed()->was_used() : (*lease)->was_used;
    const ReadLimits limits{.timeout = message.read_timeout().value_or(options.read_timeout),
                            .deadline = deadline,
                            .rate_min = message.body_rate_min().value_or(options.body_rate_min),
                            .rate_period = options.body_rate_period};
    std::unique_ptr<Exchange> exchange = make_exchange(loop, std::move(*lease), limits, options);
    authenticator.authorize(message);
    exchange->set_interim_callback(message.on_interim());
    const auto begun = co_await exchange->begin(message.head(), message.take_body());
    // Servers that close an idle connection may send 408 first, which crosses with the request: RFC
    // 9110, section 15.5.9. On a stream, a response is always that to its request.
    const bool has_crossed =
        begun && was_used && !is_multiplexed && exchange->head().status == Status::request_timeout;
    if (begun && !(has_crossed && may_be_repeated)) {
      if (message.decodes()) exchange->decode({options.limits.body_bytes_max, 0});
      co_return Attempt(ClientResponse(message.url(), std::move(exchange)));
    }
    // The server has not processed the request: it is repeated whatever it is.
    if (!begun && exchange->is_unprocessed() && !has_source && repetitions < repetitions_max) {
      exchange.reset();
      if (begun.error() == http::ErrorCode::http_1_required) {
        if (options.version == VersionChoice::http_2) co_return Attempt(begun.error(), false);
        pool->require_http_1(origin);
        origin.needs_http_1 = true;
      }
      pool->count_repetition();
      const Duration pause = repetitions == 0 ? Duration::zero() : repetition_pause * repetitions;
      ++repetitions;
      const auto slept = co_await sleep_for(pause, {});
      if (!slept) co_return Attempt(slept.error(), false);
      continue;
    }
    const bool is_lost =
        has_crossed || (was_used && !exchange->has_received() && is_stale(begun.error()));
    if (!is_lost || !may_be_repeated) co_return Attempt(begun.error(), true);
    // The server has probably closed all connections that were idle.
    pool->close_idle(origin);
  }
}

Task<Result<ClientResponse>> Shared::exchange_with_retries(Message& message, TimePoint deadline) {
  const RetryPolicy& policy = options.retry;
  tambour::detail::client::RetryDelays delays(policy);
  for (unsigned attempts = 1;; ++attempts) {
    const bool may_be_repeated = message.may_be_repeated();
    Duration delay = delays.next(loop::core_of(loop).backend().random());
    {
      // The response does not occupy its connection during the delay.
      Attempt attempt = co_await exchange(message, deadline);
      Result<ClientResponse>& response = attempt.response;
      if (attempts >= policy.attempts_max || (attempt.may_be_sent && !may_be_repeated))
        co_return std::move(response);
      if (response) {
        const auto asked = retry_after(*response, wall_time(loop));
        if (!options.retry_unavailable || !asked || *asked > options.retry_after_max)
          co_return std::move(response);
        delay = std::max(delay, *asked);
        auto discarded = co_await response->read_all(discarded_bytes_max);
        static_cast<void>(discarded);
      } else if (!tambour::detail::client::may_pass(response.error())) {
        co_return std::move(response);
      }
    }
    const auto slept = co_await sleep_for(delay, {});
    if (!slept) co_return std::unexpected(slept.error());
  }
}

Task<Result<ClientResponse>> Shared::exchange_authenticated(Message& message, TimePoint deadline) {
  const bool had_source = message.has_source();
  for (int answers = 0;; ++answers) {
    auto response = co_await exchange_with_retries(message, deadline);
    if (!response) co_return response;
    const bool may_answer = authenticator.take_challenge(message, response->head());
    if (!may_answer || had_source || answers == answers_max) co_return response;
    auto discarded = co_await response->read_all(discarded_bytes_max);
    static_cast<void>(discarded);
  }
}

Task<Result<UpgradedResponse>> Shared::open_tunnel(std::shared_ptr<Shared> shared,
                                                   ClientRequest request, std::string authority,
                                                   TimePoint deadline) {
  auto url = parse_request_url(request.url);
  if (!url) co_return std::unexpected(url.error());
  Fields fields = request.fields;
  auto message = Message::create(std::move(request), shared->options, std::move(*url));
  if (!message) co_return std::unexpected(message.error());
  message->set_tunnel(std::move(authority), std::move(fields));
  Attempt attempt = co_await shared->exchange(*message, deadline);
  if (!attempt.response) co_return std::unexpected(attempt.response.error());
  ByteStream stream;
  if (is_success(attempt.response->status())) {
    auto opened = attempt.response->upgrade();
    if (!opened) co_return std::unexpected(opened.error());
    stream = std::move(*opened);
  }
  UpgradedResponse upgraded(std::move(*attempt.response), std::move(stream));
  co_return upgraded;
}

Task<Result<UpgradedResponse>> Shared::extended_connect(std::shared_ptr<Shared> shared,
                                                        ClientRequest request, std::string protocol,
                                                        TimePoint deadline) {
  if (protocol.empty() || !is_field_value(protocol))
    co_return failure(http::ErrorCode::bad_field_value);
  request.method = Method::get;
  auto response =
      co_await send(std::move(shared), std::move(request), deadline, std::move(protocol));
  if (!response) co_return std::unexpected(response.error());
  ByteStream stream;
  if (is_success(response->status())) {
    auto opened = response->upgrade();
    if (!opened) co_return std::unexpected(opened.error());
    stream = std::move(*opened);
  }
  UpgradedResponse upgraded(std::move(*response), std::move(stream));
  co_return upgraded;
}

Task<Result<ClientResponse>> Shared::send(std::shared_ptr<Shared> shared, ClientRequest request,
                                          TimePoint deadline, std::string protocol) {
  const ClientOptions& options = shared->options;
  // The client opens tunnels itself, through a proxy.
  if (request.method == Method::connect) co_return failure(http::ErrorCode::bad_target);
  auto url = parse_request_url(request.url);
  if (url && options.hsts != nullptr) url = options.hsts->secure(*url, wall_time(shared->loop));
  if (!url) co_return std::unexpected(url.error());
  auto message = Message::create(std::move(request), options, std::move(*url));
  if (!message) co_return std::unexpected(message.error());
  if (!protocol.empty()) message->set_protocol(std::move(protocol));
  for (unsigned followed = 0;; ++followed) {
    const bool had_source = message->has_source();
    if (options.cookies != nullptr) message->set_cookies(*options.cookies, wall_time(shared->loop));
    auto response = co_await shared->exchange_authenticated(*message, deadline);
    if (response && options.cookies != nullptr)
      options.cookies->store(message->url(), response->headers(), wall_time(shared->loop));
    if (response && options.hsts != nullptr)
      options.hsts->store(message->url(), response->headers(), wall_time(shared->loop));
    if (!response || options.redirects_max == 0) co_return response;
    auto redirect = redirect_of(
        message->url(), message->head().method, response->head(),
        {.had_source = had_source, .hsts = options.hsts.get(), .now = wall_time(shared->loop)});
    if (!redirect) co_return std::unexpected(redirect.error());
    if (!*redirect) co_return response;
    if (followed == options.redirects_max) co_return failure(http::ErrorCode::too_many_redirects);
    // Otherwise the connection could not be used again.
    auto discarded = co_await response->read_all(discarded_bytes_max);
    static_cast<void>(discarded);
    message->follow(std::move(**redirect));
  }
}

}  // namespace tambour::http::detail::client
