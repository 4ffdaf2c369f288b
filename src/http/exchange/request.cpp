// Request: a view of its exchange.
#include <tambour/http/request.h>

#include <utility>

#include <tambour/task/scope.h>
#include <tambour/tls/session.h>

#include "http/body/checked.h"
#include "http/exchange/exchange.h"

namespace tambour::http {

Result<Endpoint> RequestConnection::local_endpoint() const noexcept {
  return stream_->local_endpoint();
}
Result<Endpoint> RequestConnection::peer_endpoint() const noexcept {
  return stream_->peer_endpoint();
}
const ProxyHeader* RequestConnection::proxy_header() const noexcept {
  return stream_->proxy_header();
}
const tls::Session* RequestConnection::tls() const noexcept { return stream_->tls(); }
std::string_view RequestConnection::alpn() const noexcept {
  const tls::Session* const session = tls();
  return session != nullptr ? session->alpn() : std::string_view();
}

RequestHead& Request::head() noexcept { return checked(exchange_, "Request::head()").head(); }
const RequestHead& Request::head() const noexcept {
  return checked(exchange_, "Request::head()").head();
}
RequestConnection Request::connection() const noexcept {
  return checked(exchange_, "Request::connection()").connection();
}
TimePoint Request::received_at() const noexcept {
  return checked(exchange_, "Request::received_at()").received_at();
}
std::stop_token Request::disconnect_token() const {
  return checked(exchange_, "Request::disconnect_token()").disconnect_token();
}
std::stop_token Request::shutdown_token() const noexcept {
  return checked(exchange_, "Request::shutdown_token()").shutdown_token();
}

Task<> Request::while_connected(Task<> work) const {
  const TaskContext& context = co_await this_task;
  TaskScope scope(*context.loop, context.stop);
  const std::stop_callback disconnected(disconnect_token(), [&scope] { scope.request_stop(); });
  scope.spawn(std::move(work), context.spawned_at);
  co_await scope.join();
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
