// ClientResponse and Client.
#include <tambour/http/client.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "http/client/exchange.h"
#include "http/client/shared.h"
#include "task/time_limit.h"

namespace tambour::http {

ClientResponse::ClientResponse(
    Url url, tambour::detail::OwnedPointer<detail::client::Exchange> exchange) noexcept
    : url_(std::move(url)), exchange_(std::move(exchange)) {}
ClientResponse::ClientResponse(ClientResponse&& other) noexcept = default;
ClientResponse& ClientResponse::operator=(ClientResponse&& other) noexcept = default;
ClientResponse::~ClientResponse() = default;

const ResponseHead& ClientResponse::head() const noexcept { return exchange_->head(); }
IncomingBody& ClientResponse::body() noexcept { return exchange_->body(); }

Task<Result<std::size_t>> ClientResponse::read(Buffer& into, std::size_t bytes_max) {
  auto piece = co_await body().read(bytes_max);
  if (!piece) co_return std::unexpected(piece.error());
  const std::size_t size = piece->size();
  into.append(std::move(*piece));
  co_return size;
}

Task<Result<Buffer>> ClientResponse::read_all(std::size_t bytes_max) {
  return body().read_all(bytes_max);
}

Task<Result<std::string>> ClientResponse::read_text(std::size_t bytes_max) {
  return body().read_text(bytes_max);
}

const Fields& ClientResponse::trailers() const noexcept { return exchange_->body().trailers(); }
bool ClientResponse::is_complete() const noexcept { return exchange_->is_complete(); }
Result<ByteStream> ClientResponse::upgrade() { return exchange_->upgrade(); }

Client::Client(EventLoop& loop, ClientOptions options)
    : shared_(std::make_shared<detail::client::Shared>(loop, std::move(options))) {}
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

namespace {

/// From the call until the head has arrived, and until the body has been read.
struct Limits {
  Duration head{};
  TimePoint body = never;
};

Limits limits_of(const ClientRequest& request, const detail::client::Shared& shared) noexcept {
  Limits limits{.head = request.timeout.value_or(shared.options.timeout)};
  const auto total = request.total_timeout ? request.total_timeout : shared.options.total_timeout;
  if (total && *total > Duration::zero()) {
    limits.head = limits.head > Duration::zero() ? std::min(limits.head, *total) : *total;
    limits.body = detail::base::saturating_add(shared.loop.now(), *total);
  }
  return limits;
}

Task<Result<UpgradedResponse>> upgraded(Task<Result<ClientResponse>> sending) {
  auto response = co_await std::move(sending);
  if (!response) co_return std::unexpected(response.error());
  ByteStream stream;
  if (response->status() == Status::switching_protocols) {
    auto connection = response->upgrade();
    if (!connection) co_return std::unexpected(connection.error());
    stream = std::move(*connection);
  }
  UpgradedResponse result(std::move(*response), std::move(stream));
  co_return result;
}

Task<Result<UpgradedResponse>> failed(Error error) { co_return std::unexpected(error); }

}  // namespace

Task<Result<ClientResponse>> Client::send(ClientRequest request) {
  const Limits limits = limits_of(request, *shared_);
  return detail::task::within(
      limits.head, detail::client::Shared::send(shared_, std::move(request), limits.body));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as the other functions that return tasks.
Task<Result<UpgradedResponse>> Client::upgrade(ClientRequest request, std::string protocol) {
  const auto set = request.fields.set("Upgrade", protocol);
  return set ? upgraded(send(std::move(request))) : failed(set.error());
}

Task<Result<UpgradedResponse>> Client::open_tunnel(std::string url, std::string authority,
                                                   Fields fields) {
  ClientRequest request(std::move(url));
  request.fields = std::move(fields);
  const Limits limits = limits_of(request, *shared_);
  return detail::task::within(
      limits.head, detail::client::Shared::open_tunnel(shared_, std::move(request),
                                                       std::move(authority), limits.body));
}

Task<Result<UpgradedResponse>> Client::extended_connect(ClientRequest request,
                                                        std::string protocol) {
  const Limits limits = limits_of(request, *shared_);
  return detail::task::within(
      limits.head, detail::client::Shared::extended_connect(shared_, std::move(request),
                                                            std::move(protocol), limits.body));
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
std::size_t Client::waiting_requests() const noexcept { return shared_->pool->waiting(); }
const Http2ClientStats& Client::http_2_stats() const noexcept {
  return shared_->pool->http_2_stats();
}
void Client::close_idle_connections() noexcept { shared_->pool->close_idle(); }

}  // namespace tambour::http
