// Makes WebSockets of connections whose opening handshake the library has performed.
#pragma once

#include <memory>
#include <utility>

#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket.h>

namespace tambour::http::detail::websocket {

struct Access {
  [[nodiscard]] static WebSocket make(std::shared_ptr<Connection> connection) noexcept {
    return WebSocket(std::move(connection));
  }
  [[nodiscard]] static const std::shared_ptr<Connection>& shared_connection_of(
      const WebSocket& socket) noexcept {
    return socket.connection_;
  }
  /// Null for a default-constructed WebSocket.
  [[nodiscard]] static Connection* connection_of(const WebSocket& socket) noexcept {
    return socket.connection_.get();
  }
};

}  // namespace tambour::http::detail::websocket
