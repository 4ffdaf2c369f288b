// One end of a pipe (pipe(7)), a FIFO, a terminal: bytes that come from, or go to, what is no
// socket.
#pragma once

#include <utility>

#include <tambour/result.h>
#include <tambour/stream.h>

namespace tambour {

class EventLoop;

/// A stream that reads or writes. Writing to a pipe that has no reader fails with EPIPE, and the
/// process gets no SIGPIPE. finish() and the endpoints are for sockets: ENOTSOCK.
class PipeStream final : public Stream {
 public:
  PipeStream() = default;
  /// Takes ownership of `fd`.
  ///
  /// O_NONBLOCK belongs to the open file, which other processes may share: a shell and its programs
  /// share the terminal as descriptors 0, 1 and 2. If `fd` is a terminal, a pipe or a FIFO and is
  /// not in non-blocking mode, the constructor opens the file again (/proc/self/fd, open(2)) and
  /// makes `fd` refer to the new open file, so that the one that is shared stays as it is. If that
  /// is not permitted, the constructor sets O_NONBLOCK and close() clears it again. Reading from a
  /// regular file, which is always ready, blocks.
  PipeStream(EventLoop& loop, int fd) noexcept;
  /// For what was moved to another loop: it is non-blocking already.
  explicit PipeStream(Socket&& arrived) noexcept : Stream(std::move(arrived)) {
    is_socket_ = false;
  }

  struct Ends;
  /// Two ends, close-on-exec: pipe2(2).
  static Result<Ends> open(EventLoop& loop) noexcept;
};

struct PipeStream::Ends {
  PipeStream reader;
  PipeStream writer;
};

}  // namespace tambour
