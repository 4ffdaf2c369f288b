// A byte stream that need not be a socket: what a protocol gets after an upgrade.
//
// It may be a socket with bytes in front that were read already, TLS over another byte stream, or
// a stream of a protocol that carries several. Code that only needs a socket takes a Stream&, which
// reads and writes without allocating memory for each call.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
namespace tls {
class Session;
}  // namespace tls

/// What a ByteStream consists of. Derive from it to provide byte streams of another kind.
///
/// At most one task reads, and one writes. The stream may be closed or destroyed while they wait:
/// their operations then fail with ECANCELED, and must not use the object any more.
/// Thread: used on the thread of loop().
class ByteStreamImplementation {
 public:
  ByteStreamImplementation() = default;
  ByteStreamImplementation(const ByteStreamImplementation&) = delete;
  ByteStreamImplementation& operator=(const ByteStreamImplementation&) = delete;
  /// Closes the stream.
  virtual ~ByteStreamImplementation() = default;

  /// As the functions of ByteStream.
  [[nodiscard]] virtual EventLoop& loop() const noexcept = 0;
  [[nodiscard]] virtual bool is_open() const noexcept = 0;
  [[nodiscard]] virtual Task<Result<std::size_t>> read(Buffer& into, std::size_t bytes_max) = 0;
  [[nodiscard]] virtual Task<Result<>> write(Buffer& from) = 0;
  /// By default, copies the bytes into a Buffer and writes it.
  [[nodiscard]] virtual Task<Result<>> write(std::span<const std::byte> from);
  /// By default, fails with EAGAIN and writes nothing.
  [[nodiscard]] virtual Result<> try_write(Buffer& from) noexcept;
  [[nodiscard]] virtual Task<Result<>> shutdown_write() = 0;
  virtual void close() noexcept = 0;

  /// By default: no TLS.
  [[nodiscard]] virtual const tls::Session* tls() const noexcept { return nullptr; }
  /// By default, fail with ENOTSOCK.
  [[nodiscard]] virtual Result<Endpoint> local_endpoint() const;
  [[nodiscard]] virtual Result<Endpoint> peer_endpoint() const;
  /// By default, fails with ENOTSOCK.
  [[nodiscard]] virtual Result<SocketStream> release_socket(Buffer& received);
};

/// A connected byte stream of any kind.
///
/// Ownership: a handle, which owns the stream and closes it on destruction.
/// Lifetime: may be moved while tasks read and write. Destroying it, or close(), makes them fail
/// with ECANCELED.
/// Thread: must be used on the loop's thread.
class ByteStream {
 public:
  /// A closed stream, which has no loop.
  ByteStream() noexcept = default;
  /// `received`: bytes that were read from the socket already, and are read from this stream first.
  /// Throws std::bad_alloc.
  explicit ByteStream(SocketStream stream, Buffer received = {});
  /// Takes ownership. `implementation` must not be null.
  explicit ByteStream(std::unique_ptr<ByteStreamImplementation> implementation) noexcept
      : implementation_(std::move(implementation)) {}

  /// False after close() and a move, and for a default-constructed stream.
  [[nodiscard]] bool is_open() const noexcept {
    return implementation_ != nullptr && implementation_->is_open();
  }
  /// Must not be called on a default-constructed stream.
  [[nodiscard]] EventLoop& loop() const noexcept { return implementation_->loop(); }

  /// Waits for data, appends up to `bytes_max` bytes to `into`, and returns their number; 0 means
  /// the end of the stream: the peer has closed or half-closed it. Fails with the errors of the
  /// streams below, for example ECONNRESET or a tls::ErrorCode, with EBADF if the stream is closed,
  /// and with ECANCELED.
  [[nodiscard]] Task<Result<std::size_t>> read(Buffer& into,
                                               std::size_t bytes_max = std::size_t{256} * 1024);
  /// Waits until the stream has accepted all bytes of `from`, which are removed from its front.
  /// Fails like read(), and with EPIPE.
  [[nodiscard]] Task<Result<>> write(Buffer& from);
  /// The same for bytes that the caller keeps valid until the task has ended.
  [[nodiscard]] Task<Result<>> write(std::span<const std::byte> from);
  [[nodiscard]] Task<Result<>> write(std::string_view text) {
    return write(std::as_bytes(std::span(text)));
  }

  /// Writes without waiting, and without a task: see Stream::try_write(). A stream of HTTP/2
  /// accepts all bytes or none: those that its connection can send next, without waiting for the
  /// peer. TLS over a stream that is not a socket always fails with EAGAIN, unless it is closed:
  /// EBADF.
  [[nodiscard]] Result<> try_write(Buffer& from) noexcept;

  /// Shuts down the write side, so that the peer reads the end of the stream. No other task may be
  /// writing.
  [[nodiscard]] Task<Result<>> shutdown_write();
  /// Closes the stream. No effect on a closed one.
  void close() noexcept {
    if (implementation_ != nullptr) implementation_->close();
  }

  /// The innermost TLS session, which encrypts what this stream transfers, or null. Valid as long
  /// as the stream is open.
  [[nodiscard]] const tls::Session* tls() const noexcept {
    return implementation_ != nullptr ? implementation_->tls() : nullptr;
  }
  /// The endpoints of the socket that carries the stream. Fail with EBADF if the stream is closed,
  /// and with ENOTSOCK if there is no such socket.
  [[nodiscard]] Result<Endpoint> local_endpoint() const;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const;

  /// Returns the socket if the stream is one, with TLS or without, and appends to `received` the
  /// bytes that were read from it already. This stream is closed then. No task may be reading or
  /// writing. Otherwise fails with ENOTSOCK, or EBADF if the stream is closed, and nothing changes.
  [[nodiscard]] Result<SocketStream> release_socket(Buffer& received);

 private:
  detail::OwnedPointer<ByteStreamImplementation> implementation_;
};

}  // namespace tambour

#pragma GCC visibility pop
