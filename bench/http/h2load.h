// The load of HTTP/2: h2load of nghttp2, on another processor than the server.
#pragma once

#include <string>
#include <vector>

#include "common/program.h"
#include "server/process.h"

namespace bench {

struct Http2Load {
  std::string target;
  bool tls = false;
  int connections = 1;
  int streams = 1;          ///< Concurrent requests of each connection.
  std::string upload_file;  ///< If it is not empty, its bytes are the body of each request.
  /// The size of each response's body; 0 if it does not matter. Otherwise a response that was
  /// received in part when the time ended counts in part.
  int response_bytes = 0;
  int milliseconds = 0;
};

/// Runs h2load, and returns the figures of the server.
std::vector<Figure> run_h2load(const ServerProcess& server, const Http2Load& load);

}  // namespace bench
