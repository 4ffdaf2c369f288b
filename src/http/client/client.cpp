// ClientResponse and Client.
#include <algorithm>
#include <utility>

#include <tambour/http_client.h>

#include "base/clock.h"
#include "http/client/exchange.h"
#include "http/client/shared.h"
#include "http_message/failure.h"
#include "task/time_limit.h"

namespace tambour::http {
namespace {

constexpr std::size_t read_bytes_max = std::size_t{256} * 1024;

}  // namespace

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
    const std::size_t room = std::min(bytes_max - body.size(), read_bytes_max) + 1;
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
Result<ByteStream> ClientResponse::upgrade() { return exchange_->upgrade(); }

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
  Duration limit = request.timeout.value_or(shared_->options.timeout);
  const auto total = request.total_timeout ? request.total_timeout : shared_->options.total_timeout;
  TimePoint deadline = never;
  if (total && *total > Duration::zero()) {
    limit = limit > Duration::zero() ? std::min(limit, *total) : *total;
    deadline = base::saturating_add(shared_->loop.now(), *total);
  }
  return task::within(limit, client::Shared::send(shared_, std::move(request), deadline));
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
