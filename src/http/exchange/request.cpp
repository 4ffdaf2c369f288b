// Request: a view of its exchange.
#include <tambour/http/request.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <tambour/http/url.h>
#include <tambour/task/scope.h>
#include <tambour/tls/session.h>

#include "base/parse_number.h"
#include "http/body/checked.h"
#include "http/exchange/exchange.h"
#include "task/scope_access.h"

namespace tambour::http {

namespace {

/// The values of at most `count_max` parameters with this name. Other ones are only compared.
std::vector<std::string> find_in_query(std::optional<std::string_view> query, std::string_view name,
                                       std::size_t count_max) {
  std::vector<std::string> values;
  std::string_view rest = query.value_or("");
  while (!rest.empty() && values.size() < count_max) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // Each "%" of an encoded name stands for one byte, so most other parameters are not decoded.
    if (pair.size() < name.size()) continue;
    auto parsed = parse_query(pair, 1);
    if (!parsed || parsed->empty() || parsed->front().first != name) continue;
    values.push_back(std::move(parsed->front().second));
  }
  return values;
}

}  // namespace

Result<Endpoint> RequestConnection::local_endpoint() const noexcept {
  return stream_->local_endpoint();
}
Result<Endpoint> RequestConnection::peer_endpoint() const noexcept {
  // A stream that the handler has taken has no peer here.
  if (*peer_ != nullptr && stream_->is_open()) return **peer_;
  const Result<Endpoint> asked = stream_->peer_endpoint();
  if (asked) peer_->reset(new (std::nothrow) Endpoint(*asked));
  return asked;
}
const ProxyHeader* RequestConnection::proxy_header() const noexcept {
  return stream_->proxy_header();
}
const tls::Session* RequestConnection::tls() const noexcept { return stream_->tls(); }
std::string_view RequestConnection::alpn() const noexcept {
  const tls::Session* const session = tls();
  return session != nullptr ? session->alpn() : std::string_view();
}

const detail::DetachedRequest& Request::detached(const char* function) const noexcept {
  if (!is_detached_) fail_use(function);
  return static_cast<const detail::DetachedRequest&>(*this);
}

RequestHead& Request::head() noexcept {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->head();
  return const_cast<detail::DetachedRequest&>(detached("Request::head()")).kept_head();
}
const RequestHead& Request::head() const noexcept {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->head();
  return detached("Request::head()").kept_head();
}
RequestConnection Request::connection() const noexcept {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->connection();
  return detached("Request::connection()").kept_connection();
}
std::uint64_t Request::body_bytes() const noexcept {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->body_bytes();
  return detached("Request::body_bytes()").kept_body_bytes();
}
TimePoint Request::received_at() const noexcept {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->received_at();
  return detached("Request::received_at()").kept_received_at();
}
std::stop_token Request::disconnect_token() const {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->disconnect_token();
  static_cast<void>(detached("Request::disconnect_token()"));
  return {};
}
std::stop_token Request::shutdown_token() const noexcept {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->shutdown_token();
  return detached("Request::shutdown_token()").kept_shutdown_token();
}

Task<> Request::while_connected(Task<> work) const {
  const TaskContext& context = co_await this_task;
  TaskScope scope(*context.loop, context.stop);
  const std::stop_callback disconnected(disconnect_token(), [&scope] { scope.request_stop(); });
  scope.spawn(std::move(work), context.spawned_at);
  co_await detail::task::ScopeAccess::join_to_end(scope);
}

Result<IpAddress> Request::client_address() const noexcept {
  if (client_address_) return *client_address_;
  const Result<Endpoint> peer = connection().peer_endpoint();
  if (!peer) return std::unexpected(peer.error());
  const std::optional<IpAddress> address = peer->ip_address();
  if (!address) return std::unexpected(system_error(EAFNOSUPPORT));
  return address->unmapped();
}

std::optional<std::string> Request::query_parameter(std::string_view name) const {
  std::vector<std::string> all = find_in_query(query(), name, 1);
  if (all.empty()) return std::nullopt;
  return std::move(all.front());
}

std::vector<std::string> Request::query_parameters(std::string_view name) const {
  return find_in_query(query(), name, SIZE_MAX);
}

std::unexpected<Error> Request::reject(const Error& error, std::string detail) {
  if (exchange_ != nullptr) [[likely]]
    return exchange_->reject_request(error, std::move(detail));
  static_cast<void>(detached("Request::reject()"));
  return std::unexpected(error);  // The response was sent.
}

std::unexpected<Error> Request::reject_parameter(const Sent& sent, std::string_view rule) {
  std::string detail = "the ";
  detail.append(sent.kind).append(" \"").append(sent.name).append("\" ").append(rule);
  return reject(ErrorCode::bad_parameter, std::move(detail));
}

Result<std::int64_t> Request::convert_signed(const Sent& sent, std::int64_t min, std::int64_t max) {
  const auto number = detail::base::parse_number<std::int64_t>(sent.text);
  if (number && *number >= min && *number <= max) return number;
  return reject_parameter(
      sent, "must be a number from " + std::to_string(min) + " to " + std::to_string(max));
}

Result<std::uint64_t> Request::convert_unsigned(const Sent& sent, std::uint64_t max) {
  const auto number = detail::base::parse_number<std::uint64_t>(sent.text);
  if (number && *number <= max) return number;
  return reject_parameter(sent, "must be a number from 0 to " + std::to_string(max));
}

std::string_view Request::parameter(std::string_view name) const noexcept {
  for (const auto& [key, value] : parameters_) {
    if (key == name) return value;
  }
  return {};
}

void Request::set_parameter(std::string_view name, std::string value) {
  for (auto& [key, former] : parameters_) {
    if (key == name) {
      former = std::move(value);
      return;
    }
  }
  parameters_.emplace_back(name, std::move(value));
}

}  // namespace tambour::http
