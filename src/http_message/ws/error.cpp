// The error category of the WebSocket protocol, with the text of each error.
#include "http_message/ws/error.h"

#include "base/error_table.h"

namespace tambour::http::detail::ws {
namespace {

constexpr base::ErrorText<WebSocketError> texts[] = {
    {WebSocketError::bad_method, "The method of the request does not open a WebSocket"},
    {WebSocketError::bad_http_version, "The request is not one of HTTP/1.1"},
    {WebSocketError::not_an_upgrade, "The request does not ask for an upgrade to websocket"},
    {WebSocketError::request_with_body, "The request has a body"},
    {WebSocketError::unsupported_version, "Sec-WebSocket-Version is not 13"},
    {WebSocketError::bad_key, "Sec-WebSocket-Key is not 16 bytes in Base64"},
    {WebSocketError::bad_subprotocols, "Sec-WebSocket-Protocol is not a list of distinct tokens"},
    {WebSocketError::bad_extensions, "Sec-WebSocket-Extensions is malformed"},
    {WebSocketError::origin_not_allowed, "The server does not accept the Origin of the request"},
    {WebSocketError::unexpected_status, "The server has not accepted the WebSocket"},
    {WebSocketError::bad_upgrade, "The response does not confirm the upgrade to websocket"},
    {WebSocketError::bad_accept, "Sec-WebSocket-Accept does not match the key of the request"},
    {WebSocketError::unexpected_subprotocol,
     "The server has chosen a subprotocol that was not offered"},
    {WebSocketError::unexpected_extension,
     "The server has chosen an extension or parameter that was not offered"},
    {WebSocketError::reserved_bits, "A frame has reserved bits that no extension defines"},
    {WebSocketError::reserved_opcode, "A frame has a reserved opcode"},
    {WebSocketError::fragmented_control_frame, "A control frame is fragmented"},
    {WebSocketError::control_frame_too_large, "A control frame has more than 125 bytes"},
    {WebSocketError::unmasked_frame, "A frame of a client is not masked"},
    {WebSocketError::masked_frame, "A frame of a server is masked"},
    {WebSocketError::size_not_minimal, "The size of a frame is not encoded in the fewest bytes"},
    {WebSocketError::size_out_of_range, "The size of a frame has more than 63 bits"},
    {WebSocketError::unexpected_continuation, "A continuation frame does not belong to a message"},
    {WebSocketError::missing_continuation, "A message begins within another one"},
    {WebSocketError::bad_close_payload, "The payload of a close frame has one byte"},
    {WebSocketError::bad_close_code, "A close frame has a code that must not be sent"},
    {WebSocketError::invalid_utf8, "A text is not valid UTF-8"},
    {WebSocketError::frame_too_large, "A frame is larger than the limit"},
    {WebSocketError::message_too_large, "A message is larger than the limit"},
    {WebSocketError::too_many_fragments, "A message has more fragments than the limit"},
    {WebSocketError::too_many_control_frames, "More control frames without data than the limit"},
    {WebSocketError::bad_deflate, "A compressed message is malformed"},
    {WebSocketError::inflated_too_large,
     "A compressed message decodes to more than the limits allow"},
};

}  // namespace

CloseCode close_code_for(const Error& error) noexcept {
  if (error.category() != websocket_category()) return CloseCode::internal_error;
  switch (static_cast<WebSocketError>(error.value())) {
    case WebSocketError::invalid_utf8:
    case WebSocketError::bad_deflate:
      return CloseCode::invalid_payload;
    case WebSocketError::too_many_control_frames:
      return CloseCode::policy_violation;
    case WebSocketError::frame_too_large:
    case WebSocketError::message_too_large:
    case WebSocketError::too_many_fragments:
    case WebSocketError::inflated_too_large:
      return CloseCode::message_too_big;
    default:
      return CloseCode::protocol_error;
  }
}

Status handshake_status_for(const Error& error) noexcept {
  if (error.category() != websocket_category()) return Status::internal_server_error;
  switch (static_cast<WebSocketError>(error.value())) {
    case WebSocketError::bad_method:
      return Status::method_not_allowed;
    case WebSocketError::not_an_upgrade:
    case WebSocketError::unsupported_version:
      return Status::upgrade_required;
    case WebSocketError::origin_not_allowed:
      return Status::forbidden;
    case WebSocketError::bad_http_version:
    case WebSocketError::request_with_body:
    case WebSocketError::bad_key:
    case WebSocketError::bad_subprotocols:
    case WebSocketError::bad_extensions:
      return Status::bad_request;
    default:
      return Status::internal_server_error;
  }
}

}  // namespace tambour::http::detail::ws

namespace tambour::http {

const std::error_category& websocket_category() noexcept {
  static constinit const detail::base::ErrorTable category(
      "tambour.websocket", "Unknown error of the WebSocket protocol", detail::ws::texts);
  return category;
}

}  // namespace tambour::http
