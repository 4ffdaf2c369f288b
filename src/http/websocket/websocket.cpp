// WebSocket: the handle of a connection.
#include <tambour/http/websocket.h>

#include <cerrno>
#include <utility>

#include <tambour/http/websocket_error.h>

#include "base/failure.h"
#include "http/websocket/access.h"
#include "http/websocket/connection.h"

namespace tambour::http {
namespace {

template <class T>
Task<Result<T>> not_open() {
  co_return tambour::detail::base::failure(EBADF);
}

}  // namespace

WebSocketOptions::WebSocketOptions() noexcept = default;

WebSocket::WebSocket(ByteStream stream, WebSocketRole role, const WebSocketOptions& options)
    : connection_(std::make_shared<detail::websocket::Connection>(
          std::move(stream),
          role == WebSocketRole::client ? detail::ws::Role::client : detail::ws::Role::server,
          std::make_shared<const detail::websocket::SharedOptions>(options), std::string(),
          std::nullopt)) {}
WebSocket::WebSocket(std::shared_ptr<detail::websocket::Connection> connection) noexcept
    : connection_(std::move(connection)) {}
WebSocket::WebSocket(WebSocket&& other) noexcept = default;
WebSocket& WebSocket::operator=(WebSocket&& other) noexcept {
  if (this != &other) {
    abort();
    connection_ = std::move(other.connection_);
  }
  return *this;
}
WebSocket::~WebSocket() { abort(); }

bool WebSocket::is_open() const noexcept {
  return connection_ != nullptr && connection_->is_open();
}
EventLoop& WebSocket::loop() const noexcept { return connection_->loop(); }
const std::string& WebSocket::subprotocol() const noexcept {
  static const std::string none;
  return connection_ != nullptr ? connection_->subprotocol() : none;
}
bool WebSocket::has_compression() const noexcept {
  return connection_ != nullptr && connection_->has_compression();
}

Task<Result<WebSocketMessage>> WebSocket::receive() {
  if (connection_ == nullptr) return not_open<WebSocketMessage>();
  return detail::websocket::Connection::receive(connection_);
}
Task<Result<WebSocketPart>> WebSocket::receive_part(Buffer& into, std::size_t bytes_max) {
  if (connection_ == nullptr) return not_open<WebSocketPart>();
  return detail::websocket::Connection::receive_part(connection_, into, bytes_max);
}
Task<Result<>> WebSocket::send(WebSocketMessage message) {
  if (connection_ == nullptr) return not_open<void>();
  return detail::websocket::Connection::send(connection_, std::move(message));
}
Task<Result<>> WebSocket::send_part(Buffer part, bool is_last, bool is_text) {
  if (connection_ == nullptr) return not_open<void>();
  return detail::websocket::Connection::send_part(connection_, std::move(part), is_last, is_text);
}
Result<> WebSocket::try_send(WebSocketMessage message) {
  if (connection_ == nullptr) return tambour::detail::base::failure(EBADF);
  return connection_->try_send(std::move(message));
}
std::size_t WebSocket::unsent_bytes() const noexcept {
  return connection_ != nullptr ? connection_->unsent_bytes() : 0;
}
Task<Result<>> WebSocket::flush() {
  if (connection_ == nullptr) return not_open<void>();
  return detail::websocket::Connection::flush(connection_);
}
Result<> WebSocket::ping(std::string_view payload) {
  if (connection_ == nullptr) return tambour::detail::base::failure(EBADF);
  return connection_->ping(payload);
}
std::optional<Duration> WebSocket::round_trip_time() const noexcept {
  return connection_ != nullptr ? connection_->round_trip_time() : std::nullopt;
}
Task<Result<>> WebSocket::close(CloseCode code, std::string_view reason) {
  if (connection_ == nullptr) return not_open<void>();
  return detail::websocket::Connection::close(connection_, code, std::string(reason));
}
void WebSocket::abort() noexcept {
  if (connection_ != nullptr) connection_->abort();
}
CloseCode WebSocket::close_code() const noexcept {
  return connection_ != nullptr ? connection_->close_code() : CloseCode::abnormal;
}
const std::string& WebSocket::close_reason() const noexcept {
  static const std::string none;
  return connection_ != nullptr ? connection_->close_reason() : none;
}
WebSocketStats WebSocket::stats() const noexcept {
  return connection_ != nullptr ? connection_->stats() : WebSocketStats();
}

}  // namespace tambour::http
