// The opening handshake of WebSockets, without I/O: RFC 6455, section 4; RFC 8441 for HTTP/2.
//
// Over HTTP/1.1 it is an upgrade, with a key that proves that the server knows the protocol. Over
// HTTP/2 it is an extended CONNECT, which needs neither an Upgrade nor a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>
#include <tambour/http/message.h>

#include "http_message/ws/error.h"
#include "http_message/ws/extensions.h"

namespace tambour::http::detail::ws {

/// Sec-WebSocket-Key of a client, from random bytes. Throws std::bad_alloc.
[[nodiscard]] std::string make_key(std::span<const std::byte, 16> random);
/// Sec-WebSocket-Accept of a server, from the key. Throws std::bad_alloc.
[[nodiscard]] std::string accept_for(std::string_view key);

/// What a client asks for. The views refer to the head of its request.
struct HandshakeRequest {
  std::string_view key{};                        ///< Empty over HTTP/2.
  std::vector<std::string_view> subprotocols{};  ///< In the order of the client's preference.
  std::vector<Extension> extensions{};
  std::optional<std::string_view> origin{};  ///< Browsers send it always.
};

/// Reads a request over HTTP/1.1, or with `protocol`, the value of ":protocol", over HTTP/2. Fails
/// with the errors of requests in WebSocketError: handshake_status_for() has the status of the
/// answer, which should contain the fields of add_rejection_fields(). Throws std::bad_alloc.
[[nodiscard]] Result<HandshakeRequest> read_request(const RequestHead& head);
[[nodiscard]] Result<HandshakeRequest> read_connect_request(const RequestHead& head,
                                                            std::string_view protocol);

/// The first subprotocol of the client that the server supports; names are case-sensitive.
[[nodiscard]] std::optional<std::string_view> choose_subprotocol(
    const HandshakeRequest& request, std::span<const std::string_view> supported) noexcept;

/// Protects against pages of other sites, which a browser lets open a WebSocket with the user's
/// cookies. Succeeds if the request has no Origin, if the Origin is one of `allowed`, for example
/// "https://example.org", or if it has the host and port of `authority`, to which the request was
/// sent. Otherwise fails with WebSocketError::origin_not_allowed.
[[nodiscard]] Result<> check_origin(const HandshakeRequest& request, std::string_view authority,
                                    std::span<const std::string_view> allowed) noexcept;

/// Server: adds the fields of the answer that accepts a request, except Connection, which belongs
/// to the connection. `subprotocol` and `extensions` are empty if there are none. Fails with
/// http::ErrorCode::bad_field_value. Throws std::bad_alloc.
[[nodiscard]] Result<> add_response_fields(Fields& fields, const HandshakeRequest& request,
                                           std::string_view subprotocol,
                                           std::string_view extensions);
/// Server: adds Sec-WebSocket-Version, and Upgrade or Allow where the status requires them. Throws
/// std::bad_alloc.
void add_rejection_fields(Fields& fields, const Error& error);

/// What this client asks for.
struct HandshakeOffer {
  std::string key{};  ///< From make_key(); empty over HTTP/2.
  std::vector<std::string> subprotocols{};
  std::optional<DeflateOptions> deflate{};
};

/// Client: adds the fields of the request, except Connection and Host. Fails with
/// WebSocketError::bad_subprotocols. Throws std::bad_alloc.
[[nodiscard]] Result<> add_request_fields(Fields& fields, const HandshakeOffer& offer);

/// What the server has chosen.
struct HandshakeResponse {
  std::string subprotocol{};  ///< Empty if the server has chosen none.
  std::optional<DeflateAgreement> deflate{};
};

/// Client: reads the answer to a request. Fails with the errors of responses in WebSocketError, or
/// with bad_extensions. Throws std::bad_alloc.
[[nodiscard]] Result<HandshakeResponse> read_response(const ResponseHead& head,
                                                      const HandshakeOffer& offer);

}  // namespace tambour::http::detail::ws
