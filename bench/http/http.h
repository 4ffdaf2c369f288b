// An HTTP server, which is the subject, and its clients, which send GET requests on connections
// that stay open.
//
// Server and clients are processes on different processors. The clients are the same for every
// subject and use bare system calls. They read the size of a whole response from the first one, and
// then count bytes, so that they cost less than the server.
#pragma once

#include <string>

#include "server/server.h"

namespace bench {

/// The target of the requests: nginx serves it from a file.
inline constexpr const char* http_target = "/file";

int run_http(int argc, char** argv, Serve serve);

/// The main function of a subject. It answers with ServerOptions::answer_bytes bytes of text/plain,
/// and ServerOptions::folder is a directory for its files.
template <ServerSubject Subject>
int run_http(int argc, char** argv) {
  return run_http(argc, argv, [](const ServerOptions& options, const OnListening& on_listening) {
    Subject subject(options);
    on_listening(subject.info());
    subject.run();
  });
}

}  // namespace bench
