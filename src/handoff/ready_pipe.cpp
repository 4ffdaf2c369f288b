// Finds the pipe of the environment, and verifies that the descriptor is the write end of a pipe.
#include "handoff/ready_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>

#include "base/parse_number.h"

namespace tambour::detail::handoff {
namespace {

/// -1: none.
std::atomic<int> kept{-1};

/// Returns whether `fd` is the write end of a pipe or FIFO. Any program may have set the variable:
/// a descriptor of another type is neither written to nor closed.
bool is_write_end(int fd) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_WRONLY;
}

UniqueFd named_in_environment(int least) noexcept {
  const char* const text = std::getenv(ready_variable);
  if (text == nullptr) return {};
  const auto fd = base::parse_number<int>(text);
  ::unsetenv(ready_variable);
  // The standard streams and the listeners may be pipes too.
  if (!fd || *fd < least || !is_write_end(*fd)) return {};
  return UniqueFd(*fd);
}

}  // namespace

void keep_ready_pipe(int listeners) noexcept {
  UniqueFd pipe = named_in_environment(first_passed + listeners);
  if (pipe.is_open() && ::fcntl(pipe.get(), F_SETFD, FD_CLOEXEC) == 0) kept = pipe.release();
}

UniqueFd take_ready_pipe() noexcept {
  const int fd = kept.exchange(-1);
  return fd >= 0 ? UniqueFd(fd) : named_in_environment(first_passed);
}

}  // namespace tambour::detail::handoff
