// The error category of the WebSocket protocol, with the text of each error.
#include "http_message/ws/error.h"

#include <string>

namespace tambour::http::ws {
namespace {

const char* text_of_handshake(WebSocketError error) noexcept {
  switch (error) {
    case WebSocketError::bad_method:
      return "The method of the request does not open a WebSocket";
    case WebSocketError::bad_http_version:
      return "The request has a version before HTTP/1.1";
    case WebSocketError::not_an_upgrade:
      return "The request does not ask for an upgrade to websocket";
    case WebSocketError::request_with_body:
      return "The request has a body";
    case WebSocketError::unsupported_version:
      return "Sec-WebSocket-Version is not 13";
    case WebSocketError::bad_key:
      return "Sec-WebSocket-Key is not 16 bytes in Base64";
    case WebSocketError::bad_subprotocols:
      return "Sec-WebSocket-Protocol is not a list of distinct tokens";
    case WebSocketError::bad_extensions:
      return "Sec-WebSocket-Extensions is malformed";
    case WebSocketError::origin_not_allowed:
      return "The server does not accept the Origin of the request";
    case WebSocketError::unexpected_status:
      return "The server has not accepted the WebSocket";
    case WebSocketError::bad_upgrade:
      return "The response does not confirm the upgrade to websocket";
    case WebSocketError::bad_accept:
      return "Sec-WebSocket-Accept does not match the key of the request";
    case WebSocketError::unexpected_subprotocol:
      return "The server has chosen a subprotocol that was not offered";
    case WebSocketError::unexpected_extension:
      return "The server has chosen an extension or parameter that was not offered";
    default:
      return "Unknown error of the WebSocket protocol";
  }
}

const char* text_of(WebSocketError error) noexcept {
  switch (error) {
    case WebSocketError::reserved_bits:
      return "A frame has reserved bits that no extension defines";
    case WebSocketError::reserved_opcode:
      return "A frame has a reserved opcode";
    case WebSocketError::fragmented_control_frame:
      return "A control frame is fragmented";
    case WebSocketError::control_frame_too_large:
      return "A control frame has more than 125 bytes";
    case WebSocketError::unmasked_frame:
      return "A frame of a client is not masked";
    case WebSocketError::masked_frame:
      return "A frame of a server is masked";
    case WebSocketError::size_not_minimal:
      return "The size of a frame is not encoded in the fewest bytes";
    case WebSocketError::size_out_of_range:
      return "The size of a frame has more than 63 bits";
    case WebSocketError::unexpected_continuation:
      return "A continuation frame does not belong to a message";
    case WebSocketError::missing_continuation:
      return "A message begins within another one";
    case WebSocketError::bad_close_payload:
      return "The payload of a close frame has one byte";
    case WebSocketError::bad_close_code:
      return "A close frame has a code that must not be sent";
    case WebSocketError::invalid_utf8:
      return "A text is not valid UTF-8";
    case WebSocketError::frame_too_large:
      return "A frame is larger than the limit";
    case WebSocketError::message_too_large:
      return "A message is larger than the limit";
    case WebSocketError::too_many_fragments:
      return "A message has more fragments than the limit";
    case WebSocketError::too_many_control_frames:
      return "More control frames without data than the limit";
    case WebSocketError::bad_deflate:
      return "A compressed message is malformed";
    case WebSocketError::inflated_too_large:
      return "A compressed message decodes to more than the limits allow";
    default:
      return text_of_handshake(error);
  }
}

class WebSocketCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tambour.websocket"; }
  [[nodiscard]] std::string message(int value) const override {
    return text_of(static_cast<WebSocketError>(value));
  }
};

}  // namespace

const std::error_category& websocket_category() noexcept {
  static const WebSocketCategory category;
  return category;
}

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

}  // namespace tambour::http::ws
