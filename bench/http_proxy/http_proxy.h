// A reverse proxy, which is the subject, between clients and an upstream.
//
// The proxy is a process on a processor of its own. Clients and upstream are threads of one process
// on the other processors, the same for every subject, and use bare system calls. The proxy keeps
// its connections to the upstream open, and tells it the address of the client.
#pragma once

#include "server/server.h"

namespace bench {

int run_http_proxy(int argc, char** argv, Serve serve);

/// The main function of a subject, which passes requests on to ServerOptions::upstream_port.
template <ServerSubject Subject>
int run_http_proxy(int argc, char** argv) {
  return run_http_proxy(argc, argv,
                        [](const ServerOptions& options, const OnListening& on_listening) {
                          Subject subject(options);
                          on_listening(subject.info());
                          subject.run();
                        });
}

}  // namespace bench
