// One end of a pipe (pipe(7)), a FIFO, a terminal: bytes that come from, or go to, what is no
// socket.
#pragma once

#include <utility>

#include <tambour/result.h>
#include <tambour/stream.h>

namespace tambour {

class EventLoop;

/// A stream that reads or writes. Who writes when nobody reads any more is told EPIPE, and the
/// process gets no SIGPIPE. finish() and the names of endpoints are for sockets: ENOTSOCK.
class PipeStream final : public Stream {
 public:
  PipeStream() = default;
  /// Owns `fd` from now on, and makes it non-blocking: the open file, so also for other processes
  /// that have it, as the shell has its terminal. Of a regular file, which is always ready, reading
  /// blocks.
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
