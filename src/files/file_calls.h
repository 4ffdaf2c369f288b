// Calls that do not wait for a disk or a file server, so that no thread or ring makes them.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <tambour/base/result.h>
#include <tambour/file/file.h>
#include <tambour/loop/event_loop.h>

namespace tambour::detail::files {

/// Identifies the contents that a file has: a change of them, or another file, makes another
/// version. Changes within the resolution of the times, and through mmap(2), are not seen.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  mode_t mode = 0;  ///< The type and the permissions.
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileVersion&) const = default;
};

/// The version of an open file: statx(2), or fstat(2) where a filter denies it. On a network file
/// system, as far as the kernel knows.
[[nodiscard]] Result<FileVersion> version_of(EventLoop& loop, const File& file) noexcept;

/// The version of the file that a path refers to. Fails with the errors of openat2(2), with EAGAIN
/// if the kernel would have to wait to look up the path, and with ENOSYS or EINVAL if it cannot
/// tell: see backend::open_cached().
[[nodiscard]] Result<FileVersion> version_of(EventLoop& loop, const char* path) noexcept;

struct OpenedFile {
  File file;
  FileVersion version;
};
/// Opens a regular file or a directory for reading. Fails like version_of(), with EAGAIN if the
/// file system has no block device, because it may have a server, for which open(2) would wait, and
/// with ENODEV if the path refers to something else. Throws std::bad_alloc.
[[nodiscard]] Result<OpenedFile> open_cached(EventLoop& loop, const char* path);

/// Reads from the page cache. Returns false if not all bytes are in it, or if it is not known.
[[nodiscard]] bool read_cached(const File& file, std::span<std::byte> into,
                               std::uint64_t offset) noexcept;

/// True if the bytes from `offset` on, at least one, are in the page cache: sendfile(2) will not
/// wait for the disk. The kernel reads ahead of what is read, so that the last byte is cached after
/// the others: only that is checked.
[[nodiscard]] bool is_cached(EventLoop& loop, const File& file, std::uint64_t offset,
                             std::uint64_t size) noexcept;

/// In the child after fork(2) that has lost the descriptors of its parent: the file does not close
/// its number.
void disown(const File& file) noexcept;

}  // namespace tambour::detail::files
