// Static files: ranges, conditional requests, precompressed files, index files, and a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/handler.h>
#include <tambour/loop/event_loop.h>
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

  // The cache of serve_files(). On each loop, a handler keeps the files that it has sent: those of
  // up to 64 KiB with their contents, larger ones open. It forgets a file that was not requested
  // for 10 seconds, the one that was not used for the longest time if a limit is exceeded,
  // and all open ones if the process has no descriptor left.

  /// How long a file is sent again before its name is looked up again. A file that is replaced or
  /// removed, or a small one that is changed, may be sent in its former version for this time. The
  /// default is to look it up for each request, but once for those of one iteration of the loop.
  Duration check_interval{};
  /// The descriptors that are kept: of files of more than 64 KiB, and of the contents of smaller
  /// ones that are sent often, which the kernel then sends without a copy. 0: large files are
  /// opened for each request, and the contents of small ones are copied.
  std::size_t open_files_max = 64;
  /// The memory that is kept. About 1 KiB of each file is for its name and its fields. 0: no cache.
  std::size_t memory_bytes_max = std::size_t{4} * 1024 * 1024;
};

/// What the caches of serve_files() on one loop have counted, and hold.
struct FileCacheStats {
  std::uint64_t hits = 0;        ///< Responses with a file of the cache.
  std::uint64_t checks = 0;      ///< How often the name of such a file was looked up again.
  std::uint64_t misses = 0;      ///< Files that were opened.
  std::uint64_t waits = 0;       ///< How often the kernel could not look up a name at once.
  std::uint64_t evictions = 0;   ///< Files that were forgotten because of a limit.
  std::size_t files = 0;         ///< In the caches now.
  std::size_t open_files = 0;    ///< Descriptors in the caches now.
  std::size_t memory_bytes = 0;  ///< Counted for memory_bytes_max now.
};
/// The counters of the caches of serve_files() on a loop. Must be called on the loop's thread.
[[nodiscard]] FileCacheStats file_cache_stats(EventLoop& loop) noexcept;

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
/// What is in the caches of the kernel is opened and read at once, other files by the kernel's ring
/// or a worker thread: see File. Replace files by renaming others to their names
/// (fs::replace_file), not by writing into them: a response with a large file that is being
/// overwritten mixes both versions.
///
/// Memory: for each file of more than 64 KiB that is being sent, up to 64 KiB.
[[nodiscard]] Handler serve_files(std::string folder, FileOptions options = {});

/// Sends one file like serve_files(), but without a cache, for handlers that choose it themselves.
/// `path` is not checked. The request must be GET or HEAD; others are answered with 405.
[[nodiscard]] Task<> send_file(Request& request, Response& response, std::string path,
                               FileOptions options = {});

/// The media type of a file name, by its extension: "text/html; charset=utf-8", or
/// "application/octet-stream".
[[nodiscard]] std::string_view media_type_of(std::string_view name) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
