// A server of WebSockets in a simulation, with clients that use the library and clients that send
// frames byte by byte.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::test {

/// A frame of a client, with a mask of zeros. `first` is the first byte: 0x81 for text.
inline std::string client_frame(unsigned first, std::string_view payload) {
  std::string frame(1, static_cast<char>(first));
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else {
    frame += static_cast<char>(0x80 | 126);
    frame += static_cast<char>(payload.size() >> 8);
    frame += static_cast<char>(payload.size());
  }
  return frame.append(4, '\0').append(payload);
}

inline std::string close_payload(unsigned code, std::string_view reason = {}) {
  return std::string{static_cast<char>(code >> 8), static_cast<char>(code)}.append(reason);
}

class WebSocketServing : public Serving {
 public:
  static std::string handshake(std::string_view more_fields = {}) {
    return "GET /chat HTTP/1.1\r\nHost: server.example.com\r\nUpgrade: websocket\r\n"
           "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
           "Sec-WebSocket-Version: 13\r\n" +
           std::string(more_fields) + "\r\n";
  }
  std::string url() const { return "ws://" + server_->endpoint().to_string() + "/chat"; }

  /// What the server sends after the opening handshake until it closes the connection.
  std::string frames_after(std::string sent) {
    const std::string all = ask(handshake() + std::move(sent));
    const std::size_t head = all.find("\r\n\r\n");
    EXPECT_TRUE(all.starts_with("HTTP/1.1 101 ")) << all;
    return head == std::string::npos ? all : all.substr(head + 4);
  }

  Task<http::WebSocket> connect(http::Client& client, http::WebSocketOptions options = {}) {
    Result<http::WebSocket> opened =
        co_await http::connect_websocket(client, url(), std::move(options));
    co_return or_throw(std::move(opened), "connect_websocket");
  }
};

/// Sends each message back.
inline Task<> echo(http::WebSocket& socket, http::Request& /*request*/) {
  for (;;) {
    Result<http::WebSocketMessage> message = co_await socket.receive();
    if (!message) co_return;
    const Result<> sent = co_await socket.send(std::move(*message));
    if (!sent) co_return;
  }
}

}  // namespace tambour::test
