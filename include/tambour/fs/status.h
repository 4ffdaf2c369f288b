// The status of a file: statx(2).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include <tambour/base/clock.h>

#pragma GCC visibility push(default)

namespace tambour::fs {

/// The type of a file: inode(7).
enum class Type : std::uint8_t {
  unknown,  ///< Not told by the file system: call symlink_status(). Only in directory entries.
  regular,
  directory,
  symlink,
  fifo,
  socket,
  block_device,
  character_device,
};

/// The type, size, owner, permissions and times of a file. Times are those of the file system; its
/// clock may be that of another machine.
struct Status {
  Type type = Type::unknown;
  mode_t permissions = 0;  ///< The lower 12 bits of the mode: rwx, set-id and sticky bits.
  uid_t owner = 0;
  gid_t group = 0;
  std::uint64_t size = 0;             ///< In bytes.
  std::uint64_t allocated_bytes = 0;  ///< On the disk; less than `size` if the file has holes.
  std::uint64_t links = 0;            ///< The number of names.
  /// Together, these identify the file on this machine while it exists.
  std::uint64_t inode = 0;
  dev_t device = 0;
  WallTime accessed{};
  WallTime modified{};                ///< The last change of the contents.
  WallTime changed{};                 ///< The last change of contents or status.
  std::optional<WallTime> created{};  ///< Not set if the file system does not record it.

  /// Tests of `type`.
  [[nodiscard]] bool is_regular() const noexcept { return type == Type::regular; }
  [[nodiscard]] bool is_directory() const noexcept { return type == Type::directory; }
  [[nodiscard]] bool is_symlink() const noexcept { return type == Type::symlink; }
  /// True if both describe the same file, possibly under two names.
  [[nodiscard]] bool is_same_file(const Status& other) const noexcept {
    return inode == other.inode && device == other.device;
  }
};

}  // namespace tambour::fs

#pragma GCC visibility pop
