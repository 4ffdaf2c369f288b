// A connected byte stream: a TCP or Unix-domain socket, TLS over one, a pipe, or a terminal.
//
// An idle stream holds a file descriptor and no buffers. Reads and writes are awaited by tasks; at
// most one task may read and one may write at a time. A stream has no message boundaries: a read
// returns the bytes that have arrived, however the peer wrote them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/first_call.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/detail/transport_filter.h>
#include <tambour/detail/transport_kind.h>
#include <tambour/net/io_handle.h>

namespace tambour::detail::io {
class Transport;
}  // namespace tambour::detail::io
namespace tambour::detail::net {
class ConnectionCore;
struct StreamFilter;
struct StreamInput;
struct StreamMode;
}  // namespace tambour::detail::net

#pragma GCC visibility push(default)

namespace tambour {

class File;
namespace tls {
class Session;
}  // namespace tls

/// A connected byte stream whose reads and writes are awaited by tasks. Programs open a TcpStream,
/// a UnixStream or a PipeStream; functions that only read and write take a Stream&.
///
/// Moving a derived object into a Stream keeps the open stream, but not what the derived class has
/// added, such as the PROXY header of a SocketStream.
class Stream : public IoHandle {
 public:
  Stream() = default;
  Stream(Stream&& other) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() {
    if (is_open()) close();
  }

  /// Closes the stream. Reads and writes fail with ECANCELED. No effect on a closed stream.
  void close() noexcept;
  /// Releases ownership of the file descriptor and returns it. Reads and writes fail with
  /// ECANCELED. The state of TLS is lost.
  [[nodiscard]] int release() noexcept;

  /// Makes the read, or the write or shutdown_write(), that a task awaits fail with ECANCELED,
  /// unless it is about to complete. The stream stays open. Bytes that were received are not lost;
  /// what a cancelled write(Buffer&) has not sent stays in the buffer. No effect if none is
  /// awaited.
  void cancel_read() noexcept { stop_waiting(false); }
  void cancel_write() noexcept { stop_waiting(true); }

  class Read : public detail::IoWait {
   public:
    static constexpr bool is_cancel_safe = true;

    Read(Stream& stream, std::span<std::byte> into) noexcept
        : detail::IoWait(stream, Events::read, stream.first_read()), into_(into) {}
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept;

   protected:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;

   private:
    std::span<std::byte> into_;
  };

  /// Waits for data and returns the number of bytes read; 0 means end of file: the peer has closed
  /// or half-closed the connection. Fails with ECONNRESET and other errors of recv(2) or read(2),
  /// and with ECANCELED.
  [[nodiscard]] Read read(std::span<std::byte> into) noexcept { return {*this, into}; }

  class ReadBuffer : public detail::IoWait {
   public:
    static constexpr bool is_cancel_safe = true;

    ReadBuffer(Stream& stream, Buffer& into, std::size_t bytes_max) noexcept
        : detail::IoWait(stream, Events::read, stream.first_read()),
          into_(into),
          bytes_max_(bytes_max > 0 ? bytes_max : 1) {}
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept;

   protected:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;

    Buffer& into_;

   private:
    std::size_t bytes_max_;
  };

  /// Waits for data and appends up to `bytes_max` bytes to `into`. Allocates memory only when data
  /// has arrived. Returns and fails like read(span).
  [[nodiscard]] ReadBuffer read(Buffer& into,
                                std::size_t bytes_max = std::size_t{256} * 1024) noexcept {
    return {*this, into, bytes_max};
  }

  class Write final : public detail::IoWait {
   public:
    Write(Stream& stream, std::span<const std::byte> from) noexcept
        : detail::IoWait(stream, Events::write, stream.first_write()), from_(from) {}
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;

    std::span<const std::byte> from_;
  };

  /// Waits until the kernel has accepted all bytes, which the caller owns and must keep valid until
  /// then. Fails with EPIPE or ECONNRESET if the peer has closed the connection, never with
  /// SIGPIPE; the number of bytes written before the error is not reported.
  [[nodiscard]] Write write(std::span<const std::byte> from) noexcept { return {*this, from}; }
  [[nodiscard]] Write write(std::string_view text) noexcept {
    return {*this, std::as_bytes(std::span(text))};
  }

  class WriteBuffer final : public detail::IoWait {
   public:
    /// What it has not sent stays in the buffer.
    static constexpr bool is_cancel_safe = true;

    WriteBuffer(Stream& stream, Buffer& from) noexcept
        : detail::IoWait(stream, Events::write, stream.first_write()), from_(from) {}
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;

    Buffer& from_;
  };

  /// Waits until the kernel has accepted all bytes of `from`. Bytes that it has accepted are
  /// removed from the front. Fails like write(span).
  [[nodiscard]] WriteBuffer write(Buffer& from) noexcept { return {*this, from}; }

  /// Writes without waiting: bytes of `from` that the kernel accepts at once are removed from its
  /// front. Succeeds if it has accepted all. Fails with EAGAIN if bytes are left, also of a TLS
  /// record that was begun: continue with write(from), even if `from` is empty then. It also fails
  /// so if the I/O budget of this iteration is used up. Otherwise fails like write(span), and with
  /// EBADF. No task may be writing.
  [[nodiscard]] Result<> try_write(Buffer& from) noexcept;

  class SendFile final : public detail::IoWait {
   public:
    SendFile(Stream& stream, const File& file, std::uint64_t offset, std::uint64_t& size) noexcept
        : detail::IoWait(stream, Events::write, detail::FirstCall::within_budget),
          file_(file),
          offset_(offset),
          size_(size) {}
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;

    const File& file_;
    std::uint64_t offset_;
    std::uint64_t& size_;
  };

  /// Waits until the kernel has accepted `size` bytes of a file from `offset` on, which it takes
  /// from its page cache: sendfile(2). What it has accepted is subtracted from `size`. If the bytes
  /// are not in the page cache, the thread waits for the disk. Fails with EOPNOTSUPP, without
  /// having sent anything, if the stream uses TLS, is no socket, or is simulated, or if the file
  /// system does not support it: read the file and write its bytes then. Fails with
  /// StreamError::truncated if the file has fewer bytes, and like write(span). Puts the socket in
  /// non-blocking mode: a program that ends that mode while the stream is open makes the thread
  /// wait for the peer.
  [[nodiscard]] SendFile send_file(const File& file, std::uint64_t offset,
                                   std::uint64_t& size) noexcept {
    return {*this, file, offset, size};
  }

  class ShutdownWrite final : public detail::IoWait {
   public:
    explicit ShutdownWrite(Stream& stream) noexcept
        : detail::IoWait(stream, Events::write, detail::FirstCall::at_once) {}
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(detail::loop::Core& core) noexcept override;
  };

  /// Shuts down the write side, so that the peer reads end of file: shutdown(2), SHUT_WR. Waits
  /// only if the stream uses TLS, whose end is a message of its own (close_notify). No other task
  /// may be writing.
  [[nodiscard]] ShutdownWrite shutdown_write() noexcept { return ShutdownWrite(*this); }

  /// The TLS session, or null if the stream does not use TLS. Valid as long as the stream is open;
  /// moving the stream does not move it.
  [[nodiscard]] const tls::Session* tls() const noexcept {
    return filter_ != nullptr ? &filter_->session() : nullptr;
  }

 protected:
  /// Takes ownership of `fd`. Aborts if called on a thread other than the loop's, with a message
  /// that names `function`.
  Stream(EventLoop& loop, int fd, detail::io::TransportKind kind,
         std::source_location function = std::source_location::current()) noexcept
      : IoHandle(loop, fd, function), kind_(kind) {}
  Stream(IoHandle&& handle, detail::io::TransportKind kind) noexcept
      : IoHandle(std::move(handle)), kind_(kind) {}

 private:
  friend class detail::net::ConnectionCore;
  friend struct detail::net::StreamFilter;
  friend struct detail::net::StreamInput;
  friend struct detail::net::StreamMode;

  [[nodiscard]] inline detail::io::Transport transport() const noexcept;
  /// Returns the stream that the handle of a wait is.
  [[nodiscard]] static Stream& of(IoHandle* handle) noexcept {
    return static_cast<Stream&>(*handle);
  }
  /// Releases the descriptor without restoring its blocking mode, because the caller continues to
  /// use it.
  [[nodiscard]] int hand_over() noexcept { return IoHandle::release(); }
  void drop_filter() noexcept;

  /// Some files cannot be registered with epoll (EPERM), so writing to anything but a socket is
  /// attempted at once.
  [[nodiscard]] detail::FirstCall first_write() const noexcept {
    return detail::io::is_file(kind_) ? detail::FirstCall::at_once
                                      : detail::FirstCall::within_budget;
  }
  /// A filter may hold bytes, although the socket is not readable.
  [[nodiscard]] detail::FirstCall first_read() const noexcept {
    if (filter_ == nullptr || !filter_->may_read_now()) [[likely]]
      return detail::FirstCall::when_ready;
    return detail::FirstCall::at_once;
  }

  std::uint32_t read_size_ : 24 = 0;  ///< The size of the next read, estimated from the last one.
  detail::io::TransportKind kind_ : 7 = detail::io::TransportKind::socket;
  bool is_nonblocking_ : 1 = false;  ///< Known to be in non-blocking mode, for sendfile(2).
  /// Set if the kind is TransportKind::tls.
  detail::OwnedPointer<detail::io::TransportFilter> filter_;
};

}  // namespace tambour

#pragma GCC visibility pop
