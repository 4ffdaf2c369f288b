// An HTTP server, which is the subject, and its clients, which send requests on connections that
// stay open.
//
// Server and clients are processes on different processors. The clients are the same for every
// subject. Those of HTTP/1.1 use bare system calls: they read the size of a whole response from the
// first one, and then count bytes, so that they cost less than the server. The client of HTTP/2 is
// h2load.
#pragma once

#include <string>

#include "server/server.h"

namespace bench {

/// The services of a subject, with those of arena.h; it need not have all of them. With
/// ServerOptions::tls, the server speaks TLS; with ServerOptions::http_2, HTTP/2.
inline constexpr const char* http_target = "/file";  ///< answer_bytes bytes of text/plain.
inline constexpr const char* json_target = "/json";  ///< json_text(), made for each request.
/// Reads the body, and answers with the number of its bytes, as text/plain.
inline constexpr const char* upload_target = "/upload";
/// The file FOLDER/files/static/file.txt, which a subject sends from the disk.
inline constexpr const char* static_target = "/static/file.txt";
/// The sum of the values of the query, as text/plain.
inline constexpr const char* baseline_target = "/baseline2";
/// small_bytes bytes of text/plain; also the file FOLDER/files/small. For clients of HTTP/2.
inline constexpr const char* small_target = "/small";
inline constexpr int small_bytes = 64;

/// An array of objects with about so many bytes.
std::string json_text(int bytes);

int run_http(int argc, char** argv, Serve serve);

/// The main function of a subject. ServerOptions::folder is a directory for its files.
template <ServerSubject Subject>
int run_http(int argc, char** argv) {
  return run_http(argc, argv, [](const ServerOptions& options, const OnListening& on_listening) {
    Subject subject(options);
    on_listening(subject.info());
    subject.run();
  });
}

}  // namespace bench
