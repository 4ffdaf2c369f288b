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

}  // namespace

Task<Result<WebSocket>> detail::websocket::open(Client& client, ClientRequest request,
                                                OptionsPointer options,
                                                std::optional<Status>* status) {
  if (options->compression && !has_zlib()) co_return tambour::detail::base::failure(ENOTSUP);
  const ws::HandshakeOffer offer = offer_of(*options);
  request.method = Method::get;
  request.url = http_url(std::move(request.url));
  const Result<> added = ws::add_request_fields(request.fields, offer);
  if (!added) co_return std::unexpected(added.error());
  Result<ClientResponse> response = co_await client.send(std::move(request));
  if (!response) co_return std::unexpected(response.error());
  if (status != nullptr) *status = response->status();
  auto agreed = ws::read_response(response->head(), offer);
  if (!agreed) co_return std::unexpected(agreed.error());
  Result<ByteStream> stream = response->upgrade();
  if (!stream) co_return std::unexpected(stream.error());
  auto connection =
      std::make_shared<Connection>(std::move(*stream), ws::Role::client, std::move(options),
                                   std::move(agreed->subprotocol), agreed->deflate);
  co_return Access::make(std::move(connection));
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
