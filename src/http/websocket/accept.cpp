// accept_websocket() and serve_websocket(): WebSockets of servers.
#include <cerrno>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tambour/http/websocket.h>
#include <tambour/net/ip_address.h>
#include <tambour/net/stream_error.h>

#include "base/failure.h"
#include "http/websocket/access.h"
#include "http/websocket/connection.h"
#include "http_message/ws/error.h"
#include "http_message/ws/handshake.h"

namespace tambour::http {
namespace {

using detail::websocket::Connection;
using OptionsPointer = std::shared_ptr<const WebSocketOptions>;

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

/// What the server answers, besides the key.
struct Choice {
  std::string subprotocol{};
  std::optional<detail::ws::AcceptedDeflate> deflate{};
};

Result<> check_request(const Request& request, const detail::ws::HandshakeRequest& handshake,
                       const WebSocketOptions& options) {
  if (options.compression && !detail::websocket::has_zlib())
    return tambour::detail::base::failure(ENOTSUP);
  if (options.accepts_any_origin) return {};
  return detail::ws::check_origin(handshake, request.head().authority, views_of(options.origins));
}

/// RFC 6455, section 4.2, and RFC 8441 for HTTP/2.
Result<detail::ws::HandshakeRequest> read_handshake(const RequestHead& head) {
  if (head.protocol.empty()) return detail::ws::read_request(head);
  return detail::ws::read_connect_request(head, head.protocol);
}

Result<Choice> answer(const Request& request, Response& response, const WebSocketOptions& options) {
  const auto handshake = read_handshake(request.head());
  if (!handshake) return std::unexpected(handshake.error());
  if (const Result<> checked = check_request(request, *handshake, options); !checked)
    return std::unexpected(checked.error());
  Choice choice;
  choice.subprotocol =
      detail::ws::choose_subprotocol(*handshake, views_of(options.subprotocols)).value_or("");
  if (options.compression)
    choice.deflate = detail::ws::accept_deflate(
        handshake->extensions, detail::websocket::deflate_options(*options.compression));
  const Result<> added =
      detail::ws::add_response_fields(response.headers(), *handshake, choice.subprotocol,
                                      choice.deflate ? choice.deflate->field : "");
  if (!added) return std::unexpected(added.error());
  return choice;
}

void reject(Response& response, const Error& error) {
  detail::ws::add_rejection_fields(response.headers(), error);
  static_cast<void>(response.send_error(detail::ws::handshake_status_for(error), error.message()));
}

Task<Result<WebSocket>> accept(Request& request, Response& response, OptionsPointer options) {
  Result<Choice> choice = answer(request, response, *options);
  if (!choice) {
    reject(response, choice.error());
    co_return std::unexpected(choice.error());
  }
  const std::stop_token shutdown = request.shutdown_token();
  // Afterwards, the connection of the request is unknown.
  const Result<IpAddress> client = request.client_address();
  if (client) request.set_client_address(*client);
  Result<ByteStream> stream = co_await response.upgrade();
  if (!stream) co_return std::unexpected(stream.error());
  std::optional<detail::ws::DeflateAgreement> agreement;
  if (choice->deflate) agreement = choice->deflate->agreement;
  auto connection =
      std::make_shared<Connection>(std::move(*stream), detail::ws::Role::server, std::move(options),
                                   std::move(choice->subprotocol), agreement);
  connection->close_on(shutdown);
  co_return detail::websocket::Access::make(std::move(connection));
}

Task<> serve(Request& request, Response& response,
             std::shared_ptr<const WebSocketFunction> function, OptionsPointer options) {
  Result<WebSocket> accepted = co_await accept(request, response, std::move(options));
  if (!accepted) co_return;
  WebSocket socket(std::move(*accepted));
  std::exception_ptr thrown;
  try {
    co_await (*function)(socket, request);
  } catch (...) {
    thrown = std::current_exception();
  }
  const CloseCode code = thrown == nullptr ? CloseCode::normal : CloseCode::internal_error;
  if (socket.is_open()) static_cast<void>(co_await socket.close(code));
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

Task<> invoke_callbacks(WebSocket& socket, Request& request,
                        std::shared_ptr<const WebSocketCallbacks> callbacks) {
  if (callbacks->on_open) callbacks->on_open(socket, request);
  for (;;) {
    Result<WebSocketMessage> message = co_await socket.receive();
    if (!message) {
      if (callbacks->on_close) callbacks->on_close(socket, message.error());
      co_return;
    }
    if (callbacks->on_message) callbacks->on_message(socket, std::move(*message));
  }
}

}  // namespace

Task<Result<WebSocket>> accept_websocket(Request& request, Response& response,
                                         WebSocketOptions options) {
  return accept(request, response, std::make_shared<const WebSocketOptions>(std::move(options)));
}

Handler serve_websocket(WebSocketFunction function, WebSocketOptions options) {
  return [function = std::make_shared<const WebSocketFunction>(std::move(function)),
          options = std::make_shared<const WebSocketOptions>(std::move(options))](
             Request& request, Response& response) {
    return serve(request, response, function, options);
  };
}

Handler serve_websocket(WebSocketCallbacks callbacks, WebSocketOptions options) {
  return serve_websocket(
      [callbacks = std::make_shared<const WebSocketCallbacks>(std::move(callbacks))](
          WebSocket& socket, Request& request) {
        return invoke_callbacks(socket, request, callbacks);
      },
      std::move(options));
}

}  // namespace tambour::http
