// Static files: ranges, conditional requests, precompressed files, index files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/http/handler.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// How a handler of files answers.
struct FileOptions {
  /// The file that answers a path that is a directory and ends with "/"; empty: 404.
  std::string index = "index.html";
  /// If the client accepts it, "a.js.br", "a.js.zst" or "a.js.gz" is sent in place of "a.js", in
  /// this order. These files must exist.
  bool precompressed = false;
  /// Also serves files and directories whose names begin with a dot.
  bool hidden = false;
  /// The value of the field Cache-Control: "max-age=3600", for example. Empty: no field.
  std::string cache_control{};
  /// Media types of extensions without the dot, in lower case; they precede the built-in ones.
  std::vector<std::pair<std::string, std::string>> media_types{};
};

/// A handler that sends the files of a directory, for a route whose last parameter is "path":
///
///   router.get("/static/{path...}", http::serve_files("/srv/www"));
///
/// A path with a segment that is empty, ".", ".." or contains a null byte, and one that names no
/// regular file, is answered with 404; a file that the process must not read with 403; a directory
/// without "/" at its end with a redirect. Symbolic links are followed, also
/// to files outside of the directory.
///
/// Conditional requests (RFC 9110, section 13) are answered with 304 and 412. A single range gets
/// 206, several get multipart/byteranges; more than 16 ranges, or ranges that overlap to more than
/// the whole file, are answered with the whole file. The entity tag depends on inode, size and time
/// of modification. A file that is truncated while it is sent resets the connection.
///
/// Memory: 64 KiB for each file that is being sent.
[[nodiscard]] Handler serve_files(std::string folder, FileOptions options = {});

/// Sends one file, in the same way, for handlers that choose it themselves. `path` is not checked.
/// The request must be GET or HEAD; others are answered with 405.
[[nodiscard]] Task<> send_file(Request& request, Response& response, std::string path,
                               FileOptions options = {});

/// The media type of a file name, by its extension: "text/html; charset=utf-8", or
/// "application/octet-stream".
[[nodiscard]] std::string_view media_type_of(std::string_view name) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
