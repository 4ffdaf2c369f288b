// PipeStream: pipes and terminals, opened or adopted.
#include <tambour/net/pipe.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <tambour/base/unique_fd.h>

#include "backend/system.h"
#include "base/failure.h"
#include "io/shared_nonblocking.h"
#include "loop/core.h"

namespace tambour {
namespace {

/// Terminals, pipes and FIFOs can be reopened through /proc/self/fd. The master side of a
/// pseudoterminal must not be: opening it creates a new pseudoterminal (ptmx(4)).
bool can_be_reopened(int fd) noexcept {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  if (S_ISFIFO(status.st_mode)) return true;
  int number = 0;
  return S_ISCHR(status.st_mode) && ::isatty(fd) == 1 && ::ioctl(fd, TIOCGPTN, &number) != 0;
}

/// Replaces `fd` by a non-blocking open file description of its own.
bool reopen_non_blocking(int fd, int flags) noexcept {
  if (!can_be_reopened(fd)) return false;
  std::array<char, 32> path{};
  static_cast<void>(std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd));
  const int kept = flags & (O_ACCMODE | O_APPEND | O_DIRECT);
  const UniqueFd opened(::open(path.data(), kept | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!opened.is_open()) return false;
  const int descriptor_flags = ::fcntl(fd, F_GETFD);
  const bool closes_on_exec = descriptor_flags >= 0 && (descriptor_flags & FD_CLOEXEC) != 0;
  return ::dup3(opened.get(), fd, closes_on_exec ? O_CLOEXEC : 0) == fd;
}

/// Returns how a stream must use `fd` from now on.
detail::io::TransportKind set_non_blocking(EventLoop& loop, int fd) noexcept {
  using enum detail::io::TransportKind;
  // The descriptors of a simulated host never block.
  if (&detail::loop::core_of(loop).backend().system() != &detail::backend::kernel()) return file;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return file;
  if ((flags & O_NONBLOCK) == 0 && reopen_non_blocking(fd, flags)) return file;
  return detail::io::share_nonblocking(fd) ? shared_file : file;
}

}  // namespace

PipeStream::PipeStream(EventLoop& loop, int fd) noexcept
    : Stream(loop, fd, set_non_blocking(loop, fd)) {}

Result<PipeStream::Ends> PipeStream::open(EventLoop& loop) noexcept {
  std::array<int, 2> fds{};
  detail::backend::System& system = detail::loop::core_of(loop).backend().system();
  if (system.pipe2(fds.data(), O_NONBLOCK | O_CLOEXEC) != 0) return detail::base::failure(errno);
  return Ends{.reader = PipeStream(loop, fds[0]), .writer = PipeStream(loop, fds[1])};
}

}  // namespace tambour
