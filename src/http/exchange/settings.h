// What the exchanges of a server share.
#pragma once

#include <memory>

#include <tambour/detail/namespaces.h>
#include <tambour/http/server.h>

#include "server/error_reporting.h"

namespace tambour::http {

struct ServerSettings {
  Handler handler;
  ServerOptions options;
  std::shared_ptr<detail::server::ErrorReporter> reporter;
  std::shared_ptr<detail::H2Counters> h2_counters;
};

}  // namespace tambour::http
