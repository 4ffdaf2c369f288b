// What the connections of a server share.
#pragma once

#include <stop_token>

#include <tambour/http_server.h>
#include <tambour/task.h>

namespace tambour::http {

struct ServerSettings {
  Handler handler;
  ServerOptions options;
};

/// Serves a connection until it ends. `shutdown` asks for its graceful end.
[[nodiscard]] Task<> serve_connection(SocketStream stream,
                                      std::shared_ptr<const ServerSettings> settings,
                                      std::stop_token shutdown);

}  // namespace tambour::http
