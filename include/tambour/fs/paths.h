// File system operations that do not block the loop: rename, remove, directories, links.
//
// The names are those of std::filesystem. The kernel performs most operations on an io_uring, and
// threads of WorkerPool::files() perform the others, and all if there is no ring. In a simulation,
// the files are those of the simulated host. ECANCELED means that nothing was changed: if a task is
// asked to stop while the kernel performs a change, the task waits for the result. If the task is
// destroyed meanwhile, it is unknown whether the change is performed. Queries (status(), exists(),
// canonical(), read_symlink()) end at once.
//
// All functions fail with the errors of path_resolution(7): ENOENT, ENOTDIR, EACCES, ELOOP,
// ENAMETOOLONG; with EINVAL if a path contains a null byte; with EAGAIN if WorkerPool::queued_max()
// requests wait for a thread. They throw std::bad_alloc. Paths are relative to the working
// directory of the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include <tambour/base/result.h>
#include <tambour/file/file.h>
#include <tambour/fs/status.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::fs {

/// The status of a file: statx(2). Follows symbolic links.
[[nodiscard]] Task<Result<Status>> status(std::string path);
/// Like status(), but of a symbolic link itself.
[[nodiscard]] Task<Result<Status>> symlink_status(std::string path);
/// Returns whether the file exists. ENOENT and ENOTDIR are not errors, and mean false; EACCES is an
/// error.
[[nodiscard]] Task<Result<bool>> exists(std::string path);

/// What rename() does if the new name exists: renameat2(2).
enum class Rename : std::uint8_t {
  replace,     ///< An existing file is replaced; an existing directory if it is empty.
  no_replace,  ///< Fails with EEXIST if the new name exists: RENAME_NOREPLACE.
  exchange,    ///< Both must exist and are exchanged: RENAME_EXCHANGE.
};
/// Renames a file or directory, atomically: renameat2(2). Fails with EXDEV if the names are on
/// different file systems (copy the file then), EISDIR, ENOTEMPTY, EBUSY; with EINVAL if a
/// directory would be moved into itself, or if the file system does not support the mode.
[[nodiscard]] Task<Result<>> rename(std::string from, std::string to,
                                    Rename mode = Rename::replace);

/// Removes a name of a file: unlink(2). A symbolic link is removed, not followed. Fails with EISDIR
/// for a directory.
[[nodiscard]] Task<Result<>> remove_file(std::string path);
/// Removes an empty directory: rmdir(2). Fails with ENOTEMPTY, ENOTDIR or EBUSY.
[[nodiscard]] Task<Result<>> remove_directory(std::string path);
/// Removes a file, or a directory with everything in it. Follows no symbolic link, not even one
/// that another process puts in the place of a directory meanwhile. Stops at the first error, and
/// at a stop request; what has been removed by then stays removed. Fails with ENAMETOOLONG if
/// directories are nested more than 256 deep, and with ENOENT if `path` does not exist.
[[nodiscard]] Task<Result<>> remove_all(std::string path);

/// Creates a directory with these permissions, less the umask: mkdir(2). Fails with EEXIST.
[[nodiscard]] Task<Result<>> create_directory(std::string path, mode_t permissions = 0777);
/// Creates a directory and its missing parents. Succeeds if it exists. Fails with ENOTDIR if a name
/// on the path is a file, and with EEXIST if the last one is.
[[nodiscard]] Task<Result<>> create_directories(std::string path, mode_t permissions = 0777);

/// The absolute path without symbolic links, "." and "..": realpath(3).
[[nodiscard]] Task<Result<std::string>> canonical(std::string path);
/// The target of a symbolic link: readlink(2). Fails with EINVAL if `path` is not a symbolic link.
[[nodiscard]] Task<Result<std::string>> read_symlink(std::string path);
/// Creates a symbolic link at `path`. `target` may be relative to the directory of `path`, and need
/// not exist: symlink(2). Fails with EEXIST.
[[nodiscard]] Task<Result<>> create_symlink(std::string target, std::string path);
/// Creates another name for a file: link(2). Fails with EEXIST, EXDEV, EPERM or EMLINK.
[[nodiscard]] Task<Result<>> create_hard_link(std::string file, std::string path);

/// Sets the permissions of a file, of which the lower 12 bits count: chmod(2). Follows symbolic
/// links. Fails with EPERM.
[[nodiscard]] Task<Result<>> set_permissions(std::string path, mode_t permissions);
/// Sets the times that have a value: utimensat(2). Follows symbolic links. Fails with EPERM.
[[nodiscard]] Task<Result<>> set_times(std::string path, std::optional<WallTime> accessed,
                                       std::optional<WallTime> modified);
/// Truncates a file to `size` bytes, or extends it with zeros.
[[nodiscard]] Task<Result<>> resize_file(std::string path, std::uint64_t size);

/// Waits until the names in a directory are on the disk: fsync(2) of the directory. Needed after
/// creating, renaming or removing a file that must survive a power failure; File::sync() makes only
/// the contents durable.
[[nodiscard]] Task<Result<>> sync_directory(std::string path);

}  // namespace tambour::fs

#pragma GCC visibility pop
