// The errors of the WebSocket protocol: of frames and messages, and of the opening handshake.
//
// They form an error category of their own and can be compared with an Error. close_code_for()
// returns the code with which an endpoint closes the connection after an error of a frame, and
// handshake_status_for() the status with which a server rejects a request.
#pragma once

#include <expected>
#include <system_error>
#include <type_traits>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/status.h>

#include "http_message/ws/frame.h"

namespace tambour::http::detail::ws {

enum class WebSocketError : int {
  // Frames: RFC 6455, section 5.
  reserved_bits = 1,         ///< RSV1, RSV2 or RSV3 without an extension that defines it.
  reserved_opcode,           ///< 3 to 7 or 11 to 15.
  fragmented_control_frame,  ///< A control frame without FIN.
  control_frame_too_large,   ///< More than control_bytes_max bytes.
  unmasked_frame,            ///< Clients mask each frame.
  masked_frame,              ///< Servers mask none.
  size_not_minimal,          ///< A size in more bytes than it needs.
  size_out_of_range,         ///< A size of 2^63 or more.
  unexpected_continuation,   ///< A continuation outside a message.
  missing_continuation,      ///< Another message begins before the end of this one.
  bad_close_payload,         ///< One byte: neither empty nor a code.
  bad_close_code,            ///< A code that must not be sent.
  invalid_utf8,              ///< A text message or the reason of a close frame.
  frame_too_large,           ///< More than FrameLimits::frame_bytes_max.
  message_too_large,         ///< More than FrameLimits::message_bytes_max.
  too_many_fragments,        ///< More than FrameLimits::fragments_max.
  too_many_control_frames,   ///< More than FrameLimits::control_frames_max.

  // permessage-deflate: RFC 7692.
  bad_deflate = 50,    ///< Data that is malformed, or that ends within a block.
  inflated_too_large,  ///< More than InflateLimits.

  // Requests of the opening handshake: RFC 6455, section 4.2.1; RFC 8441.
  bad_method = 100,     ///< Not GET over HTTP/1.1, or not CONNECT over HTTP/2.
  bad_http_version,     ///< Older than HTTP/1.1.
  not_an_upgrade,       ///< Upgrade has no "websocket", or Connection no "upgrade".
  request_with_body,    ///< Content-Length or Transfer-Encoding.
  unsupported_version,  ///< Sec-WebSocket-Version is not 13.
  bad_key,              ///< Sec-WebSocket-Key is not the Base64 form of 16 bytes.
  bad_subprotocols,     ///< Sec-WebSocket-Protocol is not a list of distinct tokens.
  bad_extensions,       ///< Sec-WebSocket-Extensions is malformed.
  origin_not_allowed,   ///< Origin is not among those that the server accepts.

  // Responses of the opening handshake: RFC 6455, section 4.1.
  unexpected_status = 150,  ///< Not 101 over HTTP/1.1, or not 2xx over HTTP/2.
  bad_upgrade,              ///< Upgrade is not "websocket", or Connection has no "upgrade".
  bad_accept,               ///< Sec-WebSocket-Accept is not that of the key.
  unexpected_subprotocol,   ///< A subprotocol that the client has not offered, or several.
  unexpected_extension,     ///< An extension or parameter that the client has not offered.
};

[[nodiscard]] const std::error_category& websocket_category() noexcept;

[[nodiscard]] inline Error make_error_code(
    WebSocketError error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), websocket_category()};
}

/// Returns the error value of a `Result`.
[[nodiscard]] inline std::unexpected<Error> failure(WebSocketError error) noexcept {
  return std::unexpected(make_error_code(error));
}

/// 1007, 1008 or 1009 for data and limits, and 1002 for other errors of frames; 1011 for errors of
/// another category.
[[nodiscard]] CloseCode close_code_for(const Error& error) noexcept;

/// 405, 426 (with Upgrade or Sec-WebSocket-Version), 403 or 400 for errors of requests; 500 for
/// other errors.
[[nodiscard]] Status handshake_status_for(const Error& error) noexcept;

}  // namespace tambour::http::detail::ws

template <>
struct std::is_error_code_enum<tambour::http::detail::ws::WebSocketError> : std::true_type {};
