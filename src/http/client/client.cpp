// ClientResponse and Client.
#include <tambour/http/client.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "http/client/exchange.h"
#include "http/client/shared.h"
#include "task/time_limit.h"

namespace tambour::http {

ClientResponse::ClientResponse(Url url, std::unique_ptr<detail::client::Exchange> exchange) noexcept
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

Task<Result<ClientResponse>> Client::send(ClientRequest request) {
  Duration limit = request.timeout.value_or(shared_->options.timeout);
  const auto total = request.total_timeout ? request.total_timeout : shared_->options.total_timeout;
  TimePoint deadline = never;
  if (total && *total > Duration::zero()) {
    limit = limit > Duration::zero() ? std::min(limit, *total) : *total;
    deadline = detail::base::saturating_add(shared_->loop.now(), *total);
  }
  return detail::task::within(limit,
                              detail::client::Shared::send(shared_, std::move(request), deadline));
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
