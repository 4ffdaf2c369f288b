// A file as a handler of files sends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/file/file.h>
#include <tambour/http/fields.h>
#include <tambour/http/files.h>
#include <tambour/loop/event_loop.h>

#include "files/file_calls.h"
#include "files/memory_file.h"
#include "http/files/conditions.h"

namespace tambour::http {

/// A regular file, or a directory. Responses in progress share it.
struct StaticFile {
  /// The size of a file whose contents may be in memory.
  static constexpr std::uint64_t contents_bytes_max = std::uint64_t{64} * 1024;

  File file;  ///< Closed if the contents were in memory before the first response.
  detail::files::FileVersion version;
  Validators validators;
  Fields fields;    ///< Of a response with status 200, as far as they depend on the file.
  Buffer contents;  ///< If has_contents.
  bool has_contents = false;
  /// The contents, if the kernel has them: see let_kernel_keep().
  std::shared_ptr<detail::files::MemoryFile> kernel_contents;

  [[nodiscard]] bool is_directory() const noexcept;
  [[nodiscard]] bool has_descriptor() const noexcept {
    return file.is_open() || kernel_contents != nullptr;
  }
  /// True if the contents may be in memory and are not.
  [[nodiscard]] bool may_have_contents() const noexcept {
    return !has_contents && version.size <= contents_bytes_max;
  }
};

/// What the type of a file and its fields depend on.
struct StaticFileName {
  std::string_view path;    ///< Without the suffix of a coding.
  std::string_view coding;  ///< Of a precompressed file: "gzip", for example.
};

/// Reads the contents of a small file if they are in the page cache. Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<StaticFile> make_static_file(EventLoop& loop,
                                                           detail::files::OpenedFile&& opened,
                                                           const StaticFileName& name,
                                                           const FileOptions& options);

/// Reads the contents if they are in the page cache, and have the version of `file`: a response
/// must not mix two versions. Throws std::bad_alloc.
void load_contents(EventLoop& loop, StaticFile& file);

/// Moves contents that are in memory into pages of the kernel, which sockets send without a copy.
/// Takes a descriptor. No effect if the kernel does not permit it. Throws std::bad_alloc.
void let_kernel_keep(EventLoop& loop, StaticFile& file);

/// True if each further change of the file will make another version: the last one was longer ago
/// than the resolution of the times.
[[nodiscard]] bool is_settled(const detail::files::FileVersion& version,
                              std::int64_t wall_ns) noexcept;

}  // namespace tambour::http
