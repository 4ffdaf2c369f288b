// What the connections of a server share.
#pragma once

#include <memory>
#include <stop_token>

#include <tambour/http_server.h>
#include <tambour/task.h>

#include "server/error_reporting.h"

namespace tambour::http {

struct ServerSettings {
  Handler handler;
  ServerOptions options;
  std::shared_ptr<server::ErrorReporter> reporter;
};

/// Serves a connection until it ends. `shutdown` asks for its graceful end.
[[nodiscard]] Task<> serve_connection(SocketStream stream,
                                      std::shared_ptr<const ServerSettings> settings,
                                      std::stop_token shutdown);

}  // namespace tambour::http
