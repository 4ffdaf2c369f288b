// What an endpoint answers to the errors of the WebSocket protocol: close_code_for() returns the
// code with which it closes the connection after an error of a frame, and handshake_status_for()
// the status with which a server rejects a request.
#pragma once

#include <expected>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/status.h>
#include <tambour/http/websocket_error.h>

#include "http_message/ws/frame.h"

namespace tambour::http::detail::ws {

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
