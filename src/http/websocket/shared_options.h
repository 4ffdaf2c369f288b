// The options of WebSockets, as all connections of a handler or client share them.
#pragma once

#include <memory>
#include <utility>

#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket.h>

#include "http_message/ws/frame_parser.h"

namespace tambour::http::detail::websocket {

struct SharedOptions final : WebSocketOptions {
  explicit SharedOptions(WebSocketOptions options)
      : WebSocketOptions(std::move(options)),
        frame_limits{.frame_bytes_max = frame_bytes_max,
                     .message_bytes_max = message_bytes_max,
                     .fragments_max = fragments_max,
                     .control_frames_max = control_frames_max} {}

  ws::FrameLimits frame_limits;  ///< The same limits, for parsers.
};

using OptionsPointer = std::shared_ptr<const SharedOptions>;

}  // namespace tambour::http::detail::websocket
