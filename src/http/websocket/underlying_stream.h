// The byte stream below a WebSocket. If it is a socket, it is used as one: operations of a socket
// need no coroutine frames of their own, and a write may be tried without a task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/byte_stream.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

#include "io/transport.h"
#include "loop/core.h"
#include "net/stream_filter.h"

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
  /// Writes `from`, which is not changed, if it is one piece of memory and the stream is a socket
  /// without a filter. Returns the number of bytes that the socket has accepted; 0 also in other
  /// cases, and on an error, which the next write reports.
  [[nodiscard]] std::size_t try_write_piece(const Buffer& from) noexcept {
    using tambour::detail::net::StreamFilter;
    const std::span<const std::byte> bytes = from.front();
    if (bytes.size() != from.size() || !socket_.is_open()) return 0;
    if (StreamFilter::kind(socket_) != tambour::detail::io::TransportKind::socket) return 0;
    if (tambour::detail::loop::core_of(socket_.loop()).io_budget_exhausted()) return 0;
    const std::int32_t written = StreamFilter::transport(socket_).write(bytes);
    return written > 0 ? static_cast<std::size_t>(written) : 0;
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
