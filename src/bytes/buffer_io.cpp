// Buffer: reading from and writing to file descriptors.
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>

#include <tambour/bytes/buffer.h>

#include "base/failure.h"
#include "bytes/buffer_blocks.h"

namespace tambour {

std::size_t Buffer::pieces(std::span<iovec> pieces, std::size_t size) const noexcept {
  std::size_t count = 0;
  for (const Segment* segment = first(); segment != nullptr; segment = after(segment)) {
    if (count == pieces.size() || size == 0) break;
    const std::size_t here = std::min(size, segment->size());
    pieces[count++] = {.iov_base = segment->begin, .iov_len = here};
    size -= here;
  }
  return count;
}

Result<std::size_t> Buffer::read_from(int fd, std::size_t size) {
  if (size == 0) return 0;
  // Bytes that do not fit into the current block are read onto the stack and appended, so that a
  // reader that receives little does not need a large block.
  std::array<std::byte, std::size_t{60} * 1024> overflow;
  const auto room = prepare(0);
  const std::size_t here = std::min(room.size(), size);
  const std::size_t beyond = std::min(overflow.size(), size - here);
  const std::array<iovec, 2> pieces{{{.iov_base = room.data(), .iov_len = here},
                                     {.iov_base = overflow.data(), .iov_len = beyond}}};
  const ssize_t got = ::readv(fd, pieces.data(), beyond > 0 ? 2 : 1);
  if (got < 0) {
    const Error error = system_error(errno);
    commit(0);
    return std::unexpected(error);
  }
  const auto count = static_cast<std::size_t>(got);
  commit(std::min(count, here));
  if (count > here) append(std::span(overflow).first(count - here));
  return count;
}

Result<std::size_t> Buffer::write_to(int fd) noexcept {
  std::array<iovec, 64> out;
  const std::size_t count = pieces(out);
  if (count == 0) return 0;
  const ssize_t written = ::writev(fd, out.data(), static_cast<int>(count));
  if (written < 0) return detail::base::failure(errno);
  consume(static_cast<std::size_t>(written));
  return static_cast<std::size_t>(written);
}

}  // namespace tambour
