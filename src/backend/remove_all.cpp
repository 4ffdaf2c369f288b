// remove_all(): removes the entries of a directory through descriptors, so that a directory that is
// replaced by a symbolic link meanwhile does not lead to other files (CVE-2022-21658).
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "backend/system.h"
#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

using base::Call;

bool remove_at(int parent, const char* name, const std::atomic<bool>& is_stopped,
               unsigned depth) noexcept;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

/// Returns false with errno.
bool remove_entries(DIR* directory, const std::atomic<bool>& is_stopped, unsigned depth) noexcept {
  for (;;) {
    errno = 0;
    if (const auto planned = base::planned_outcome(Call::file_list)) {
      errno = -*planned;
      return false;
    }
    const dirent* const entry = ::readdir(directory);
    if (entry == nullptr) return errno == 0;
    const char* const name = entry->d_name;
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
    if (!remove_at(::dirfd(directory), name, is_stopped, depth)) return false;
  }
}

bool remove_directory_at(int parent, const char* name, const std::atomic<bool>& is_stopped,
                         unsigned depth) noexcept {
  if (depth == remove_depth_max) {
    errno = ENAMETOOLONG;
    return false;
  }
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const mode_t unused = 0;
  const int fd = base::uninterrupted(Call::file_open, ::openat, parent, name, flags, unused);
  if (fd < 0) return false;
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(fd));
  if (directory == nullptr) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return false;
  }
  if (!remove_entries(directory.get(), is_stopped, depth + 1)) return false;
  return base::system_call(Call::file_remove, ::unlinkat, parent, name, int{AT_REMOVEDIR}) == 0 ||
         errno == ENOENT;
}

/// Another process may remove entries too: it is no error if an entry is missing.
bool remove_at(int parent, const char* name, const std::atomic<bool>& is_stopped,
               unsigned depth) noexcept {
  if (is_stopped.load(std::memory_order_relaxed)) {
    errno = ECANCELED;
    return false;
  }
  if (base::system_call(Call::file_remove, ::unlinkat, parent, name, 0) == 0) return true;
  if (errno == ENOENT && depth > 0) return true;
  // EISDIR on Linux; EPERM according to POSIX, and on some file systems.
  if (errno != EISDIR && errno != EPERM) return false;
  const int error = errno;
  if (remove_directory_at(parent, name, is_stopped, depth)) return true;
  // A file that may not be removed.
  if (errno == ENOTDIR) errno = error;
  return errno == ENOENT && depth > 0;
}

}  // namespace

int remove_all(const char* path, const std::atomic<bool>& is_stopped) noexcept {
  return remove_at(AT_FDCWD, path, is_stopped, 0) ? 0 : -1;
}

}  // namespace tambour::detail::backend
