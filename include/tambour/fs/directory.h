// Reading directories of any size.
//
//   auto directory = or_throw(co_await fs::Directory::open("/var/log"));
//   for (;;) {
//     auto entry = or_throw(co_await directory.next());
//     if (!entry) break;
//     std::puts(entry->name.c_str());
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tambour/base/result.h>
#include <tambour/fs/status.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::fs {

/// An entry of a directory: getdents(2). "." and ".." are left out.
struct DirectoryEntry {
  std::string name{};         ///< Without the path of the directory.
  Type type = Type::unknown;  ///< Of a symbolic link: Type::symlink.
  std::uint64_t inode = 0;
};

/// An open directory. Entries are read 32 KiB at a time, so the memory does not depend on the size
/// of the directory. They have no order; "." and ".." are left out. An entry that is created or
/// removed meanwhile may be returned or not.
///
/// Ownership: owns a file descriptor.
/// Lifetime: may be moved, also while a task waits in next().
/// Thread: belongs to no loop; one task at a time may await next().
class Directory {
 public:
  Directory() noexcept;
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  ~Directory();

  /// Fails with ENOTDIR, ENOENT, EACCES, EMFILE and other errors of open(2).
  [[nodiscard]] static Task<Result<Directory>> open(std::string path);

  /// The next entry, or nullopt at the end. A task that is asked to stop waits until the kernel has
  /// read the entries, which are not lost. If the task is destroyed meanwhile, entries may be lost:
  /// close the directory then. Fails with EBADF if it is closed, EIO, or ENOENT if the directory
  /// was removed.
  [[nodiscard]] Task<Result<std::optional<DirectoryEntry>>> next();

  /// False after close() and a move, and for a default-constructed directory.
  [[nodiscard]] bool is_open() const noexcept { return state_ != nullptr; }
  /// The file descriptor, which the directory still owns; -1 if it is closed.
  [[nodiscard]] int fd() const noexcept;
  void close() noexcept { state_.reset(); }

 private:
  struct [[gnu::visibility("hidden")]] State;
  explicit Directory(std::shared_ptr<State> state) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace tambour::fs

#pragma GCC visibility pop
