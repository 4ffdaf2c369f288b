// Streams that are not sockets: one end of a pipe (pipe(7)), a FIFO, or a terminal.
#pragma once

#include <tambour/base/result.h>
#include <tambour/net/stream.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// A stream that either reads or writes. Writing to a pipe without a reader fails with EPIPE; the
/// process gets no SIGPIPE, except within 10 ms after it has stopped ignoring the signal.
/// shutdown_write() fails with ENOTSOCK.
class PipeStream final : public Stream {
 public:
  PipeStream() = default;
  /// Takes ownership of `fd`.
  ///
  /// O_NONBLOCK is a flag of the open file, which other processes may share: a shell and its
  /// programs share the terminal as file descriptors 0, 1 and 2. If `fd` is a terminal, a pipe or a
  /// FIFO and is not in non-blocking mode, the constructor opens the file again (/proc/self/fd,
  /// open(2)) and makes `fd` refer to the new open file, so that the shared one keeps its mode. If
  /// that is not permitted, or if `fd` is a socket or the master side of a pseudoterminal, the
  /// constructor sets O_NONBLOCK, and close() and release() clear it again. If several streams of
  /// the process share the open file, the last one clears it. Reading a regular file, which is
  /// always ready, blocks.
  PipeStream(EventLoop& loop, int fd) noexcept;

  struct Ends;
  /// Creates a pipe; both ends are close-on-exec: pipe2(2).
  [[nodiscard]] static Result<Ends> open(EventLoop& loop) noexcept;
};

/// Both ends of a pipe.
struct PipeStream::Ends {
  PipeStream reader;
  PipeStream writer;
};

}  // namespace tambour

#pragma GCC visibility pop
