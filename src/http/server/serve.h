// Serves the connections of a server, with the protocol that was negotiated.
#pragma once

#include <memory>

#include <tambour/detail/namespaces.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

#include "http/exchange/settings.h"
#include "http/server/idle/server_on_loop.h"
#include "http_message/protocol_name.h"

namespace tambour::http {

/// Whether a server speaks HTTP/2.
[[nodiscard]] inline Http2Support http_2_support(const ServerOptions& options) noexcept {
  return options.http_2.is_enabled ? Http2Support::spoken : Http2Support::none;
}

/// Serves a connection until it ends. The protocol must have been checked: see protocol.h.
[[nodiscard]] Task<> serve_connection(SocketStream stream, std::shared_ptr<ServerOnLoop> server);

}  // namespace tambour::http
