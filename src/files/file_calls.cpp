// Calls that do not wait for the disk.
#include "files/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>

#include "backend/open_cached.h"
#include "backend/system.h"
#include "base/failure.h"
#include "files/calls.h"
#include "loop/core.h"

namespace tambour::detail::files {
namespace {

backend::System& system_of(EventLoop& loop) noexcept {
  return loop::core_of(loop).backend().system();
}

/// `time`: a timespec or a statx_timestamp.
std::int64_t nanoseconds(const auto& time) noexcept {
  constexpr std::int64_t seconds_max = 9'000'000'000;  // The year 2255.
  return std::clamp<std::int64_t>(time.tv_sec, -seconds_max, seconds_max) * 1'000'000'000 +
         time.tv_nsec;
}

/// Old filters of containers deny statx(2) with EPERM.
Result<FileVersion> version_by_fstat(backend::System& system, int fd, int error) noexcept {
  struct stat found{};
  if ((error != EPERM && error != ENOSYS) || system.fstat(fd, &found) != 0)
    return base::failure(error);
  return FileVersion{
      .device = std::uint64_t{major(found.st_dev)} << 32U | minor(found.st_dev),
      .inode = found.st_ino,
      .size = static_cast<std::uint64_t>(found.st_size),
      .mode = found.st_mode,
      .modified_ns = nanoseconds(found.st_mtim),
      .changed_ns = nanoseconds(found.st_ctim),
  };
}

Result<FileVersion> version_of(backend::System& system, int fd) noexcept {
  struct statx found{};
  if (system.statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, &found) != 0)
    return version_by_fstat(system, fd, errno);
  return FileVersion{
      .device = std::uint64_t{found.stx_dev_major} << 32U | found.stx_dev_minor,
      .inode = found.stx_ino,
      .size = found.stx_size,
      .mode = found.stx_mode,
      .modified_ns = nanoseconds(found.stx_mtime),
      .changed_ns = nanoseconds(found.stx_ctime),
  };
}

/// A descriptor that is closed unless it is released.
class OpenedFd {
 public:
  OpenedFd(backend::System& system, int fd) noexcept : system_(system), fd_(fd) {}
  OpenedFd(const OpenedFd&) = delete;
  OpenedFd& operator=(const OpenedFd&) = delete;
  ~OpenedFd() {
    if (fd_ >= 0) system_.close(fd_);
  }

  [[nodiscard]] int get() const noexcept { return fd_; }
  void release() noexcept { fd_ = -1; }

 private:
  backend::System& system_;
  int fd_;
};

}  // namespace

Result<FileVersion> version_of(EventLoop& loop, const File& file) noexcept {
  return version_of(system_of(loop), file.fd());
}

Result<FileVersion> version_of(EventLoop& loop, const char* path) noexcept {
  backend::System& system = system_of(loop);
  const OpenedFd opened(system, backend::open_cached(system, path, O_PATH | O_CLOEXEC));
  if (opened.get() < 0) return base::failure(errno);
  return version_of(system, opened.get());
}

Result<OpenedFile> open_cached(EventLoop& loop, const char* path) {
  backend::System& system = system_of(loop);
  // open(2) waits for a file server even if the path is known; with O_PATH it does not. File
  // systems without a block device, whose major number is 0, may have a server.
  const Result<FileVersion> found = version_of(loop, path);
  if (!found) return std::unexpected(found.error());
  if (found->device >> 32U == 0) return base::failure(EAGAIN);
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  OpenedFd opened(system, backend::open_cached(system, path, flags));
  if (opened.get() < 0) return base::failure(errno);
  const Result<FileVersion> version = version_of(system, opened.get());
  if (!version) return std::unexpected(version.error());
  if (!S_ISREG(version->mode) && !S_ISDIR(version->mode)) return base::failure(ENODEV);
  // io_uring does not wait for the disk to read a file with O_NONBLOCK.
  if (system.confirm_file(opened.get(), flags) != 0) return base::failure(errno);
  File file = Access::make(std::make_shared<OpenFile>(system, opened.get(), O_RDONLY));
  opened.release();
  return OpenedFile{.file = std::move(file), .version = *version};
}

bool read_cached(const File& file, std::span<std::byte> into, std::uint64_t offset) noexcept {
  const std::shared_ptr<OpenFile>& open_file = Access::file_of(file);
  while (!into.empty()) {
    if (!open_file->may_read_cached()) return false;
    const ssize_t count = open_file->system().pread_cached(open_file->fd(), into.data(),
                                                           into.size(), static_cast<off_t>(offset));
    if (count <= 0) {
      if (count < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) open_file->note_never_cached();
      return false;
    }
    into = into.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return true;
}

bool is_cached(EventLoop& loop, const File& file, std::uint64_t offset,
               std::uint64_t size) noexcept {
  std::byte last{};
  return system_of(loop).pread_cached(file.fd(), &last, 1, static_cast<off_t>(offset + size - 1)) ==
         1;
}

void disown(const File& file) noexcept { Access::file_of(file)->disown(); }

}  // namespace tambour::detail::files
