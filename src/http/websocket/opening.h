// The opening handshake of clients.
#pragma once

#include <memory>
#include <optional>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/http/status.h>
#include <tambour/http/websocket.h>
#include <tambour/task/task.h>

#include "http/websocket/shared_options.h"

namespace tambour::http::detail::websocket {

/// connect_websocket(). Sets `status`, which may be null, when a response has arrived.
[[nodiscard]] Task<Result<WebSocket>> open(Client& client, ClientRequest request,
                                           OptionsPointer options, std::optional<Status>* status);

}  // namespace tambour::http::detail::websocket
