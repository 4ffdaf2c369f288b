// A WebSocket server, which is the subject, and its clients.
//
// Server and clients are processes on different processors. The clients are the same for every
// subject and use bare system calls: they send prepared frames, and parse only the headers of those
// that they receive, so that they cost less than the server.
#pragma once

#include "server/server.h"

namespace bench {

/// ServerOptions::service says what a server does with each message. It accepts every target.
/// With ServerOptions::deflate, it agrees on permessage-deflate without context takeover, which the
/// clients ask for. Messages have at most this size.
inline constexpr int websocket_message_bytes_max = 16 << 20;

int run_websocket(int argc, char** argv, Serve serve);

/// The main function of a subject.
template <ServerSubject Subject>
int run_websocket(int argc, char** argv) {
  return run_websocket(argc, argv,
                       [](const ServerOptions& options, const OnListening& on_listening) {
                         Subject subject(options);
                         on_listening(subject.info());
                         subject.run();
                       });
}

/// Replaces the process with a server that is a program: PROGRAM [SCRIPT] PORT echo|broadcast
/// plain|deflate.
[[noreturn]] void execute_server(const ServerOptions& options, const char* program,
                                 const char* script = nullptr);

}  // namespace bench
