// Whole files: reading, replacing and copying them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tambour/base/result.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::fs {

/// Reads a whole file, also one whose size is not known before (/proc). Fails with EFBIG if it has
/// more than `bytes_max` bytes, and with the errors of File::open() and File::read_at().
[[nodiscard]] Task<Result<std::string>> read_file(std::string path,
                                                  std::size_t bytes_max = std::size_t{64} << 20);

/// How replace_file() writes a file.
struct ReplaceOptions {
  /// The permissions of the file. Not set: those of the file that is replaced; 0666 less the umask
  /// if there is none.
  std::optional<mode_t> permissions{};
  /// Waits until contents and name are on the disk. Without it, a power failure may leave an empty
  /// file or the old one. If only the process ends, the file has the old or the new contents in any
  /// case.
  bool sync = true;

  // With GCC 12, an aggregate must not be written inside a co_await expression.
  ReplaceOptions() noexcept {}  // NOLINT(modernize-use-equals-default)
};
/// Replaces the contents of a file atomically, or creates it: writes a temporary file in the same
/// directory, syncs it, renames it and syncs the directory. Other processes see the old contents or
/// the new ones. If it fails, or the task is stopped or destroyed before the rename, the old file
/// is unchanged and the temporary file removed; if the task is destroyed while the temporary file
/// is being created, it may stay. A symbolic link is replaced, not followed: pass
/// canonical(path) to keep it. Other hard links keep the old contents. The new file belongs to the
/// process's user. If syncing the directory fails, or the task is stopped between the rename and
/// that, the error (ECANCELED) is returned although the file has been replaced.
[[nodiscard]] Task<Result<>> replace_file(std::string path, std::string contents,
                                          ReplaceOptions options = {});

/// What copy_file() does if the destination exists.
enum class ExistingFile : std::uint8_t {
  fail,     ///< EEXIST
  replace,  ///< It is overwritten, not atomically, and keeps its owner and permissions.
};
/// How copy_file() copies a file.
struct CopyOptions {
  ExistingFile existing = ExistingFile::fail;
  /// Waits until contents and name of the copy are on the disk: fsync(2) of the file and of its
  /// directory. Without it, a power failure may leave an incomplete copy.
  bool sync = false;
};
/// Copies the contents and permissions (less the umask) of a regular file, and returns the number
/// of bytes. The kernel copies if it can, and file systems such as Btrfs and XFS share the blocks:
/// copy_file_range(2). Otherwise the bytes pass through a buffer of 128 KiB. Symbolic links are
/// followed. A new file is removed again if copying fails or is stopped; a replaced one keeps a
/// part of the new contents. Fails with EISDIR if `from` is a directory, EINVAL if it is not a
/// regular file or if both are the same file, ENOSPC and other errors of File. If syncing the
/// directory fails, or the task is stopped before that, the error is returned although the copy is
/// complete.
[[nodiscard]] Task<Result<std::uint64_t>> copy_file(std::string from, std::string to,
                                                    CopyOptions options = {});

}  // namespace tambour::fs

#pragma GCC visibility pop
