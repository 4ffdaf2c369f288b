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
#include "http_message/characters.h"
#include "http_message/ws/error.h"
#include "http_message/ws/handshake.h"

namespace tambour::http {
namespace {

using detail::websocket::Connection;

/// The URL for the client, which knows the schemes of HTTP.
std::string http_url(std::string url) {
  const std::size_t end = url.find(':');
  const std::string_view scheme = std::string_view(url).substr(0, end);
  if (equal_ignoring_case(scheme, "ws")) url.replace(0, end, "http");
  if (equal_ignoring_case(scheme, "wss")) url.replace(0, end, "https");
  return url;
}

detail::ws::HandshakeOffer offer_of(const WebSocketOptions& options) {
  std::array<std::byte, 16> random;
  detail::websocket::fill_mask_key(random);
  detail::ws::HandshakeOffer offer{.key = detail::ws::make_key(random),
                                   .subprotocols = options.subprotocols};
  if (options.compression) offer.deflate = detail::websocket::deflate_options(*options.compression);
  return offer;
}

Task<Result<WebSocket>> open(Client& client, ClientRequest request, WebSocketOptions options) {
  if (options.compression && !detail::websocket::has_zlib())
    co_return tambour::detail::base::failure(ENOTSUP);
  const detail::ws::HandshakeOffer offer = offer_of(options);
  request.method = Method::get;
  request.url = http_url(std::move(request.url));
  const Result<> added = detail::ws::add_request_fields(request.fields, offer);
  if (!added) co_return std::unexpected(added.error());
  Result<ClientResponse> response = co_await client.send(std::move(request));
  if (!response) co_return std::unexpected(response.error());
  auto agreed = detail::ws::read_response(response->head(), offer);
  if (!agreed) co_return std::unexpected(agreed.error());
  Result<ByteStream> stream = response->upgrade();
  if (!stream) co_return std::unexpected(stream.error());
  auto connection =
      std::make_shared<Connection>(std::move(*stream), detail::ws::Role::client,
                                   std::make_shared<const WebSocketOptions>(std::move(options)),
                                   std::move(agreed->subprotocol), agreed->deflate);
  co_return detail::websocket::Access::make(std::move(connection));
}

}  // namespace

Task<Result<WebSocket>> connect_websocket(Client& client, ClientRequest request,
                                          WebSocketOptions options) {
  return open(client, std::move(request), std::move(options));
}

Task<Result<WebSocket>> connect_websocket(Client& client, std::string url,
                                          WebSocketOptions options) {
  return open(client, ClientRequest(std::move(url)), std::move(options));
}

}  // namespace tambour::http
