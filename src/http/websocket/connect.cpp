// connect_websocket(): WebSockets of clients.
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/http/client.h>
#include <tambour/http/websocket.h>

#include "base/failure.h"
#include "http/websocket/access.h"
#include "http/websocket/connection.h"
#include "http/websocket/mask_keys.h"
#include "http/websocket/opening.h"
#include "http_message/characters.h"
#include "http_message/ws/error.h"
#include "http_message/ws/handshake.h"

namespace tambour::http {
namespace {

using detail::websocket::OptionsPointer;

/// The client knows the schemes of HTTP.
void use_http_scheme(std::string& url) {
  const std::size_t end = url.find(':');
  const std::string_view scheme = std::string_view(url).substr(0, end);
  if (equal_ignoring_case(scheme, "ws"))
    url.replace(0, end, "http");
  else if (equal_ignoring_case(scheme, "wss"))
    url.replace(0, end, "https");
}

detail::ws::HandshakeOffer offer_of(const WebSocketOptions& options) {
  std::array<std::byte, 16> random;
  detail::websocket::fill_mask_key(random);
  detail::ws::HandshakeOffer offer{.key = detail::ws::make_key(random),
                                   .subprotocols = options.subprotocols};
  if (options.compression) offer.deflate = detail::websocket::deflate_options(*options.compression);
  return offer;
}

/// The WebSocket over a stream, if the response is the one of the protocol.
Result<WebSocket> make_websocket(const ResponseHead& head, const detail::ws::HandshakeOffer& offer,
                                 Result<ByteStream> stream, OptionsPointer options) {
  auto agreed = detail::ws::read_response(head, offer);
  if (!agreed) return std::unexpected(agreed.error());
  if (!stream) return std::unexpected(stream.error());
  return detail::websocket::Access::make(std::make_shared<detail::websocket::Connection>(
      std::move(*stream), detail::ws::Role::client, std::move(options),
      std::move(agreed->subprotocol), agreed->deflate));
}

/// RFC 8441. Fails with ErrorCode::no_extended_connect before the server has seen a request.
Task<Result<WebSocket>> open_over_http_2(Client& client, const ClientRequest& request,
                                         OptionsPointer options, std::optional<Status>* status) {
  detail::ws::HandshakeOffer offer = offer_of(*options);
  offer.key.clear();
  ClientRequest connect(request.url);
  connect.fields = request.fields;
  connect.timeout = request.timeout;
  const Result<> added = detail::ws::add_request_fields(connect.fields, offer);
  if (!added) co_return std::unexpected(added.error());
  auto upgraded = co_await client.extended_connect(std::move(connect), "websocket");
  if (!upgraded) co_return std::unexpected(upgraded.error());
  if (status != nullptr) *status = upgraded->response.status();
  co_return make_websocket(upgraded->response.head(), offer, std::move(upgraded->stream),
                           std::move(options));
}

}  // namespace

Task<Result<WebSocket>> detail::websocket::open(Client& client, ClientRequest request,
                                                OptionsPointer options,
                                                std::optional<Status>* status) {
  if (options->compression && !has_zlib()) co_return tambour::detail::base::failure(ENOTSUP);
  request.method = Method::get;
  use_http_scheme(request.url);
  Result<WebSocket> opened = co_await open_over_http_2(client, request, options, status);
  if (opened || opened.error() != ErrorCode::no_extended_connect) co_return opened;
  // The connection that has been opened meanwhile, for HTTP/1.1, is used now.
  const ws::HandshakeOffer offer = offer_of(*options);
  const Result<> added = ws::add_request_fields(request.fields, offer);
  if (!added) co_return std::unexpected(added.error());
  Result<ClientResponse> response = co_await client.send(std::move(request));
  if (!response) co_return std::unexpected(response.error());
  if (status != nullptr) *status = response->status();
  co_return make_websocket(response->head(), offer, response->upgrade(), std::move(options));
}

Task<Result<WebSocket>> connect_websocket(Client& client, ClientRequest request,
                                          WebSocketOptions options) {
  return detail::websocket::open(
      client, std::move(request),
      std::make_shared<const detail::websocket::SharedOptions>(std::move(options)), nullptr);
}

Task<Result<WebSocket>> connect_websocket(Client& client, std::string url,
                                          WebSocketOptions options) {
  return connect_websocket(client, ClientRequest(std::move(url)), std::move(options));
}

}  // namespace tambour::http
