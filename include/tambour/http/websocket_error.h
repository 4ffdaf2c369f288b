// The errors of the WebSocket protocol and the status codes of its close frames: RFC 6455 and RFC
// 7692. The errors have their own error category and can be compared with an Error.
#pragma once

#include <cstdint>
#include <system_error>
#include <type_traits>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The status codes of close frames (RFC 6455, section 7.4). A program may use 3000 to 4999 as
/// well. Others that a close frame may contain: 1000 to 1003 and 1007 to 1014.
enum class CloseCode : std::uint16_t {
  normal = 1000,
  going_away = 1001,
  protocol_error = 1002,
  unsupported_data = 1003,
  no_status = 1005,        ///< Reported for a close frame without a code; never sent.
  abnormal = 1006,         ///< Reported for a connection without a close frame; never sent.
  invalid_payload = 1007,  ///< For example text that is not UTF-8.
  policy_violation = 1008,
  message_too_big = 1009,
  missing_extension = 1010,  ///< Sent by clients.
  internal_error = 1011,
  service_restart = 1012,
  try_again_later = 1013,
  bad_gateway = 1014,
  tls_handshake = 1015,  ///< Reported for a failed TLS handshake; never sent.
};

/// Why a WebSocket or its handshake has failed.
enum class WebSocketError : int {
  // Frames: RFC 6455, section 5.
  reserved_bits = 1,         ///< RSV1, RSV2 or RSV3 without an extension that defines it.
  reserved_opcode,           ///< 3 to 7 or 11 to 15.
  fragmented_control_frame,  ///< A control frame without FIN.
  control_frame_too_large,   ///< More than 125 bytes.
  unmasked_frame,            ///< Clients mask each frame.
  masked_frame,              ///< Servers mask none.
  size_not_minimal,          ///< A size in more bytes than it needs.
  size_out_of_range,         ///< A size of 2^63 or more.
  unexpected_continuation,   ///< A continuation outside a message.
  missing_continuation,      ///< Another message begins before the end of this one.
  bad_close_payload,         ///< One byte: neither empty nor a code.
  bad_close_code,            ///< A code that must not be sent.
  invalid_utf8,              ///< A text message or the reason of a close frame.
  frame_too_large,           ///< More than WebSocketOptions::frame_bytes_max.
  message_too_large,         ///< More than WebSocketOptions::message_bytes_max.
  too_many_fragments,        ///< More than WebSocketOptions::fragments_max.
  too_many_control_frames,   ///< More than WebSocketOptions::control_frames_max.

  // permessage-deflate: RFC 7692.
  bad_deflate = 50,    ///< Data that is malformed, or that ends within a block.
  inflated_too_large,  ///< More than WebSocketOptions allows.

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

/// The category "tambour.websocket", whose values are those of WebSocketError. Any thread.
[[nodiscard]] const std::error_category& websocket_category() noexcept;

/// Converts to an Error, also implicitly: `error == http::WebSocketError::unexpected_status`.
[[nodiscard]] inline Error make_error_code(
    WebSocketError error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), websocket_category()};
}

}  // namespace tambour::http

template <>
struct std::is_error_code_enum<tambour::http::WebSocketError> : std::true_type {};

#pragma GCC visibility pop
