#include <tambour/pipe.h>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <utility>

#include "backend/system.h"
#include "loop/core.h"

namespace tambour {

PipeStream::PipeStream(EventLoop& loop, int fd) noexcept : Stream(loop, fd) {
  is_socket_ = false;
  // A simulated host knows no descriptors that block.
  if (&system() != &backend::kernel()) return;
  if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0 && (flags & O_NONBLOCK) == 0)
    ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

Result<PipeStream::Ends> PipeStream::open(EventLoop& loop) noexcept {
  std::array<int, 2> fds{};
  backend::System& system = loop::core_of(loop).backend().system();
  if (system.pipe2(fds.data(), O_NONBLOCK | O_CLOEXEC) != 0)
    return std::unexpected(system_error(errno));
  return Ends{.reader = PipeStream(loop, fds[0]), .writer = PipeStream(loop, fds[1])};
}

}  // namespace tambour
