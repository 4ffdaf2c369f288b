// open_cached(): openat2(2), for which glibc has no wrapper.
#include "backend/open_cached.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/seccomp.h"
#include "base/system_call.h"

namespace tambour::detail::backend {
namespace {

int openat2(const char* path, const open_how* options) noexcept {
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, options, sizeof(*options)));
}

}  // namespace

int open_cached(const System& system, const char* path, int flags) noexcept {
  if (&system != &kernel() || base::seccomp_filter_was_inherited() ||
      base::seccomp_filter_is_installed()) {
    errno = ENOSYS;
    return -1;
  }
  open_how options{};
  options.flags = static_cast<std::uint64_t>(flags);
  options.resolve = RESOLVE_CACHED;
  return base::system_call(base::Call::file_open, openat2, path, &options);
}

}  // namespace tambour::detail::backend
