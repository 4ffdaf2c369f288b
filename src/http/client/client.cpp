// Requests: connecting, repeating, following redirects.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <tambour/event_loop.h>
#include <tambour/http_client.h>
#include <tambour/stream_error.h>
#include <tambour/when.h>

#include "http/client/exchange.h"
#include "http/client/pool.h"
#include "http/client/redirect.h"
#include "http/coding/negotiation.h"
#include "http/failure.h"

namespace tambour::http {
namespace client {
namespace {

/// How much of the body of a redirect is read so that its connection can be used again.
constexpr std::size_t discarded_bytes_max = std::size_t{64} * 1024;
constexpr std::size_t piece_bytes_max = std::size_t{256} * 1024;

/// A request as it is sent to one URL.
struct Message {
  RequestHead head;
  Buffer bytes;
  std::unique_ptr<BodySource> source;
  std::optional<std::uint64_t> source_bytes;
  bool expects_continue = false;
  bool decodes = false;

  /// To be called before take_body().
  [[nodiscard]] bool may_be_repeated() const noexcept {
    return source == nullptr && head.method.is_idempotent();
  }
  /// The bytes are shared, so that the request can be sent again.
  [[nodiscard]] OutgoingBody take_body() {
    OutgoingBody body{.bytes = bytes.slice(), .expects_continue = expects_continue};
    const Method& method = head.method;
    const bool has_meaning =
        method == Method::post || method == Method::put || method == Method::patch;
    if (source != nullptr) {
      body.source = std::move(source);
      body.framing = source_bytes ? h1::BodyFraming{h1::BodyKind::length, *source_bytes}
                                  : h1::BodyFraming{h1::BodyKind::chunked};
    } else if (!bytes.empty() || has_meaning) {
      body.framing = {h1::BodyKind::length, bytes.size()};
    }
    return body;
  }
};

/// Whether the server may have closed the connection before it saw the request.
bool is_stale(const Error& error) noexcept {
  return error == StreamError::eof || error == system_error(ECONNRESET) ||
         error == system_error(EPIPE);
}

}  // namespace

/// What a client and the requests that it has begun share.
struct Shared : public std::enable_shared_from_this<Shared> {
  Shared(EventLoop& on, ClientOptions chosen)
      : loop(on), options(std::move(chosen)), pool(std::make_shared<Pool>(loop, options)) {}

  [[nodiscard]] Result<TlsClientContext> tls_context();
  [[nodiscard]] Task<Result<Lease>> connect(Origin origin);
  [[nodiscard]] Task<Result<ClientResponse>> exchange(const Url& url, Message& message);
  [[nodiscard]] static Task<Result<ClientResponse>> send(std::shared_ptr<Shared> shared,
                                                         ClientRequest request);

  EventLoop& loop;
  ClientOptions options;
  std::shared_ptr<Pool> pool;
};

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

Task<Result<ClientResponse>> Shared::exchange(const Url& url, Message& message) {
  const Origin origin = origin_of(url);
  const bool may_be_repeated = message.may_be_repeated();
  for (;;) {
    auto lease = co_await connect(origin);
    if (!lease) co_return std::unexpected(lease.error());
    const bool was_used = (*lease)->was_used;
    auto exchange = std::make_unique<Exchange>(loop, std::move(*lease), options.read_timeout);
    auto head = co_await exchange->begin(message.head, message.take_body());
    if (head) {
      if (message.decodes) exchange->decode(head->fields, {options.limits.body_bytes_max, 0});
      co_return ClientResponse(std::move(*head), url, std::move(exchange));
    }
    const bool is_lost = was_used && !exchange->has_received() && is_stale(head.error());
    if (!is_lost || !may_be_repeated) co_return std::unexpected(head.error());
    // The server has probably closed all connections that were idle.
    pool->close_idle(origin);
  }
}

Task<Result<ClientResponse>> Shared::send(std::shared_ptr<Shared> shared, ClientRequest request) {
  auto url = parse_request_url(request.url);
  if (!url) co_return std::unexpected(url.error());
  Message message{.head = {.method = request.method, .fields = std::move(request.fields)},
                  .bytes = std::move(request.body),
                  .source = std::move(request.source),
                  .source_bytes = request.source_bytes,
                  .expects_continue = request.expect_continue};
  if (message.source != nullptr) message.bytes.clear();
  if (!shared->options.user_agent.empty() && !message.head.fields.contains("User-Agent")) {
    auto added = message.head.fields.add("User-Agent", shared->options.user_agent);
    if (!added) co_return std::unexpected(added.error());
  }
  // Ranges are of the coded body, so that a part cannot be decoded.
  message.decodes = shared->options.decompress &&
                    !message.head.fields.contains("Accept-Encoding") &&
                    !message.head.fields.contains("Range");
  if (message.decodes)
    static_cast<void>(message.head.fields.add("Accept-Encoding", coding::available_codings()));
  if (message.expects_continue) {
    auto added = message.head.fields.set("Expect", "100-continue");
    if (!added) co_return std::unexpected(added.error());
  }
  for (unsigned followed = 0;; ++followed) {
    const bool had_source = message.source != nullptr;
    message.head.target = url->request_target();
    message.head.authority = authority_of(*url);
    auto response = co_await shared->exchange(*url, message);
    if (!response || shared->options.redirects_max == 0) co_return response;
    auto redirect = redirect_of(*url, message.head.method, response->head(), had_source);
    if (!redirect) co_return response;
    if (followed == shared->options.redirects_max) co_return failure(HttpError::too_many_redirects);
    // Otherwise the connection could not be used again.
    auto discarded = co_await response->read_all(discarded_bytes_max);
    static_cast<void>(discarded);
    if (origin_of(redirect->url) != origin_of(*url)) remove_credentials(message.head.fields);
    if (!redirect->keeps_body) {
      message.bytes.clear();
      message.source.reset();
      message.expects_continue = false;
      remove_body_fields(message.head.fields);
    }
    message.head.method = redirect->method;
    url = std::move(redirect->url);
  }
}

}  // namespace client

ClientResponse::ClientResponse(ResponseHead head, Url url,
                               std::unique_ptr<client::Exchange> exchange) noexcept
    : head_(std::move(head)), url_(std::move(url)), exchange_(std::move(exchange)) {}
ClientResponse::ClientResponse(ClientResponse&& other) noexcept = default;
ClientResponse& ClientResponse::operator=(ClientResponse&& other) noexcept = default;
ClientResponse::~ClientResponse() = default;

Task<Result<std::size_t>> ClientResponse::read(Buffer& into, std::size_t bytes_max) {
  return exchange_->read(into, bytes_max);
}

Task<Result<Buffer>> ClientResponse::read_all(std::size_t bytes_max) {
  Buffer body;
  for (;;) {
    // One more than the maximum shows that there is more.
    const std::size_t room = std::min(bytes_max - body.size(), client::piece_bytes_max) + 1;
    auto got = co_await exchange_->read(body, room);
    if (!got) co_return std::unexpected(got.error());
    if (body.size() > bytes_max) {
      exchange_->close();
      co_return failure(HttpError::body_too_large);
    }
    if (*got == 0) co_return body;
  }
}

Task<Result<std::string>> ClientResponse::read_text(std::size_t bytes_max) {
  auto body = co_await read_all(bytes_max);
  if (!body) co_return std::unexpected(body.error());
  co_return body->to_string();
}

const Fields& ClientResponse::trailers() const noexcept { return exchange_->trailers(); }
bool ClientResponse::is_complete() const noexcept { return exchange_->is_complete(); }
Result<SocketStream> ClientResponse::upgrade(Buffer& received) {
  return exchange_->upgrade(received);
}

Client::Client(EventLoop& loop, ClientOptions options)
    : shared_(std::make_shared<client::Shared>(loop, std::move(options))) {}
Client::Client(Client&& other) noexcept = default;
Client& Client::operator=(Client&& other) noexcept {
  if (this == &other) return *this;
  if (shared_ != nullptr) shared_->pool->shut_down();
  shared_ = std::move(other.shared_);
  return *this;
}
Client::~Client() {
  if (shared_ != nullptr) shared_->pool->shut_down();
}

Task<Result<ClientResponse>> Client::send(ClientRequest request) {
  const Duration limit = request.timeout.value_or(shared_->options.timeout);
  return timeout(limit, client::Shared::send(shared_, std::move(request)));
}

Task<Result<ClientResponse>> Client::get(std::string url) {
  return send(ClientRequest(std::move(url)));
}

Task<Result<ClientResponse>> Client::post(std::string url, std::string_view content_type,
                                          Buffer body) {
  ClientRequest request(Method::post, std::move(url), std::move(body));
  // A content type that is no field value fails in send().
  if (auto added = request.fields.add("Content-Type", content_type); !added) {
    return [](Error error) -> Task<Result<ClientResponse>> {
      co_return std::unexpected(error);
    }(added.error());
  }
  return send(std::move(request));
}

std::size_t Client::connections() const noexcept { return shared_->pool->open(); }
std::size_t Client::idle_connections() const noexcept { return shared_->pool->idle(); }
void Client::close_idle_connections() noexcept { shared_->pool->close_idle(); }

}  // namespace tambour::http
