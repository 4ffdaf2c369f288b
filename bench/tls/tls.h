// A TLS server, which is the subject, and its clients: full and resumed handshakes, downloads, idle
// connections.
//
// The server answers "GET /BYTES HTTP/1.1" with a body of that many bytes, so that nginx can be a
// subject. Server and clients are processes on different processors. The clients are the same for
// every subject and use OpenSSL on non-blocking sockets. They offer only TLS 1.3, X25519 and
// AES-128-GCM, and the key of the server is P-256, so that all subjects make the same computations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/server.h"

namespace bench {

/// The number in a request, or nullopt if `received` ends before the request does. Clients do not
/// send a request before they have received the answer to the last one.
std::optional<int> requested_bytes(std::string_view received);

/// The answer to a request, head and body. The reference is valid until the process ends.
const std::string& answer_of(int bytes);

/// The name of a certificate: every second one is a wildcard. If there are several, clients ask for
/// the last one.
std::string name_of(int certificate);

int run_tls(int argc, char** argv, Serve serve);

/// The main function of a subject. ServerOptions::folder contains `server.pem`, which is the
/// certificate and then the key.
template <ServerSubject Subject>
int run_tls(int argc, char** argv) {
  return run_tls(argc, argv, [](const ServerOptions& options, const OnListening& on_listening) {
    Subject subject(options);
    on_listening(subject.info());
    subject.run();
  });
}

}  // namespace bench
