// Requests: connecting, repeating, following redirects.
#include <cerrno>
#include <utility>

#include <tambour/stream_error.h>

#include "http/client/exchange.h"
#include "http/client/redirect.h"
#include "http/client/shared.h"
#include "http/failure.h"
#include "loop/core.h"

namespace tambour::http::client {
namespace {

/// How much of the body of a redirect is read so that its connection can be used again.
constexpr std::size_t discarded_bytes_max = std::size_t{64} * 1024;

/// Whether the server may have closed the connection before it saw the request.
bool is_stale(const Error& error) noexcept {
  return error == StreamError::eof || error == system_error(ECONNRESET) ||
         error == system_error(EPIPE);
}

CookieJar::Time wall_time(EventLoop& loop) noexcept {
  return CookieJar::Time(std::chrono::nanoseconds(loop::core_of(loop).wall_ns()));
}

}  // namespace

Result<TlsClientContext> Shared::tls_context() {
  if (!options.tls) {
    TlsClientOptions defaults;
    defaults.alpn = {"http/1.1"};
    auto created = TlsClientContext::create(std::move(defaults));
    if (!created) return std::unexpected(created.error().error);
    options.tls = std::move(*created);
  }
  return options.tls;
}

Task<Result<Lease>> Shared::connect(Origin origin) {
  auto lease = co_await Pool::acquire(pool, origin);
  if (!lease || lease->is_connected()) co_return lease;
  Result<SocketStream> stream;
  if (origin.is_secure) {
    auto tls = tls_context();
    if (!tls) co_return std::unexpected(tls.error());
    stream = co_await tambour::connect(origin.host, origin.port, *tls, options.connect);
  } else {
    stream = co_await tambour::connect(origin.host, origin.port, options.connect);
  }
  if (!stream) co_return std::unexpected(stream.error());
  lease->connected(std::make_unique<Connection>(std::move(*stream), options.limits));
  co_return lease;
}

Task<Result<ClientResponse>> Shared::exchange(Message& message) {
  const Origin origin = origin_of(message.url());
  const bool may_be_repeated = message.may_be_repeated();
  for (;;) {
    auto lease = co_await connect(origin);
    if (!lease) co_return std::unexpected(lease.error());
    const bool was_used = (*lease)->was_used;
    auto exchange = std::make_unique<Exchange>(loop, std::move(*lease), options.read_timeout);
    auto head = co_await exchange->begin(message.head(), message.take_body());
    if (head) {
      if (message.decodes()) exchange->decode(head->fields, {options.limits.body_bytes_max, 0});
      co_return ClientResponse(std::move(*head), message.url(), std::move(exchange));
    }
    const bool is_lost = was_used && !exchange->has_received() && is_stale(head.error());
    if (!is_lost || !may_be_repeated) co_return std::unexpected(head.error());
    // The server has probably closed all connections that were idle.
    pool->close_idle(origin);
  }
}

Task<Result<ClientResponse>> Shared::send(std::shared_ptr<Shared> shared, ClientRequest request) {
  const ClientOptions& options = shared->options;
  auto url = parse_request_url(request.url);
  if (!url) co_return std::unexpected(url.error());
  auto message = Message::create(std::move(request), options, std::move(*url));
  if (!message) co_return std::unexpected(message.error());
  for (unsigned followed = 0;; ++followed) {
    const bool had_source = message->has_source();
    if (options.cookies != nullptr) message->set_cookies(*options.cookies, wall_time(shared->loop));
    auto response = co_await shared->exchange(*message);
    if (response && options.cookies != nullptr)
      options.cookies->store(message->url(), response->fields(), wall_time(shared->loop));
    if (!response || options.redirects_max == 0) co_return response;
    auto redirect =
        redirect_of(message->url(), message->head().method, response->head(), had_source);
    if (!redirect) co_return response;
    if (followed == options.redirects_max) co_return failure(HttpError::too_many_redirects);
    // Otherwise the connection could not be used again.
    auto discarded = co_await response->read_all(discarded_bytes_max);
    static_cast<void>(discarded);
    message->follow(std::move(*redirect));
  }
}

}  // namespace tambour::http::client
