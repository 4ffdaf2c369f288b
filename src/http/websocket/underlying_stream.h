// The byte stream below a WebSocket. If it is a socket, it is used as one: operations of a socket
// need no coroutine frames of their own, and a write may be tried without a task.
#pragma once

#include <memory>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/byte_stream.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::websocket {

/// Ownership: owns the stream. Thread: that of the loop.
class UnderlyingStream {
 public:
  /// Appends to `received` what was read from the socket already. Throws std::bad_alloc.
  UnderlyingStream(ByteStream stream, Buffer& received) {
    auto released = stream.release_socket(received);
    if (released) {
      socket_ = std::move(*released);
    } else {
      stream_ = std::make_unique<ByteStream>(std::move(stream));
    }
  }

  [[nodiscard]] bool is_open() const noexcept {
    return is_socket() ? socket_.is_open() : stream_->is_open();
  }
  void close() noexcept {
    socket_.close();
    if (!is_socket()) stream_->close();
  }
  /// True: read() of socket(). Otherwise: read() of stream().
  [[nodiscard]] bool is_socket() const noexcept { return stream_ == nullptr; }
  [[nodiscard]] SocketStream& socket() noexcept { return socket_; }
  [[nodiscard]] ByteStream& stream() noexcept { return *stream_; }

  /// As Stream::try_write().
  [[nodiscard]] Result<> try_write(Buffer& from) noexcept {
    return is_socket() ? socket_.try_write(from) : stream_->try_write(from);
  }
  [[nodiscard]] Task<Result<>> write(Buffer& from) {
    return is_socket() ? write_socket(from) : stream_->write(from);
  }
  [[nodiscard]] Task<Result<>> shutdown_write() {
    return is_socket() ? shut_socket_down() : stream_->shutdown_write();
  }

 private:
  [[nodiscard]] Task<Result<>> write_socket(Buffer& from) {
    co_return co_await socket_.write(from);
  }
  [[nodiscard]] Task<Result<>> shut_socket_down() { co_return co_await socket_.shutdown_write(); }

  SocketStream socket_;
  std::unique_ptr<ByteStream> stream_;  ///< Null if it is a socket.
};

}  // namespace tambour::http::detail::websocket
