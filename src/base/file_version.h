// Detects that a file was replaced or changed.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace tambour::detail::base {

/// Differs if a path names another file, or if the file has changed.
struct FileVersion {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = -1;  ///< -1: the file is missing or cannot be examined.
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileVersion&) const = default;

  [[nodiscard]] static FileVersion of(const struct stat& status) noexcept {
    const auto ns = [](const timespec& time) {
      return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    return {.device = status.st_dev,
            .inode = status.st_ino,
            .size = status.st_size,
            .modified_ns = ns(status.st_mtim),
            .changed_ns = ns(status.st_ctim)};
  }
};

}  // namespace tambour::detail::base
