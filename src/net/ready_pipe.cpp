#include "net/ready_pipe.h"

#include <fcntl.h>

#include <atomic>
#include <cstdlib>

#include "base/parse_number.h"

namespace tambour::net {
namespace {

/// -1: none.
std::atomic<int> kept{-1};

UniqueFd named_in_environment(int least) noexcept {
  const char* const text = std::getenv(ready_variable);
  if (text == nullptr) return {};
  const auto fd = base::parse_number<int>(text);
  ::unsetenv(ready_variable);
  // Anybody may have set it. Standard streams, and listeners, are not to be closed for that.
  if (!fd || *fd < least) return {};
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

}  // namespace tambour::net
