// A connected byte stream: TCP, a Unix-domain socket, or one end of a socket pair.
//
// An idle stream holds a file descriptor and no buffers. Reads and writes are awaited by tasks; at
// most one task may read and one may write at a time. A stream has no message boundaries: a read
// returns the bytes that have arrived, however the peer wrote them.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>

#include <tambour/buffer.h>
#include <tambour/callback.h>
#include <tambour/detail/io_operation.h>
#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

class EventLoop;
struct ProxyHeader;
class Stream;
namespace backend {
class System;
}
namespace io {
class Transport;
}

/// A socket that belongs to a loop.
///
/// Ownership: owns the file descriptor and closes it on destruction.
/// Lifetime: may be moved at any time, including while a task waits on it.
/// Thread: must be used on the loop's thread.
class Socket {
 public:
  Socket() = default;
  /// Takes ownership of `fd`. If `fd` is not a socket it must be in non-blocking mode. Aborts on
  /// another thread than the loop's.
  Socket(EventLoop& loop, int fd) noexcept;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Creates a socket: socket(2).
  [[nodiscard]] static Result<Socket> open(EventLoop& loop, int family, int type,
                                           int protocol = 0) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// The file descriptor, which the socket still owns; -1 if the socket is closed.
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }

  /// Closes the socket. Waits on it fail with ECANCELED. No effect on a closed socket.
  void close() noexcept;

  /// Releases ownership of the file descriptor and returns it. Waits on the socket fail with
  /// ECANCELED.
  [[nodiscard]] int release() noexcept;

  /// Moves the socket and its proxy header to another loop, and invokes `then` with it on that
  /// loop's thread; this object is then closed. Waits on this socket fail with ECANCELED. If the
  /// other loop is destroyed first, the socket is closed. Throws std::bad_alloc. For streams and
  /// tasks, use spawn_on() in <tambour/spawn_on.h>.
  void move_to(EventLoop& to, Callback<void(Socket)> then);

  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// For a proxied stream, the endpoint that the proxy reported.
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;

  /// The header that a proxy sent at the start of the stream, or null if there was none; see
  /// proxy_protocol.h. Servers that require a header set it; so may code that has read one itself.
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept { return proxy_header_; }
  void set_proxy_header(std::unique_ptr<const ProxyHeader> header) noexcept;

  /// setsockopt(2) with an int.
  [[nodiscard]] Result<> set_option(int level, int option, int value) noexcept;

 protected:
  /// Makes the wait to write, or to read, fail with ECANCELED.
  void stop_waiting(bool to_write) noexcept;
  friend class Connection;
  friend class SocketWait;
  friend class Stream;
  class SocketWait*& waiting(bool to_write) noexcept { return waits_[to_write ? 1 : 0]; }
  [[nodiscard]] backend::System& system() const noexcept { return *system_; }
  [[nodiscard]] io::Transport transport() const noexcept;

  /// False for a pipe or a terminal: recv(2) and send(2) would fail, so read(2) and write(2) are
  /// used.
  bool is_socket_ = true;
  /// A PipeStream set O_NONBLOCK on an open file that others may share; close() calls
  /// net::restore_blocking().
  bool restores_blocking_ = false;

 private:
  EventLoop* loop_ = nullptr;
  backend::System* system_ = nullptr;
  int fd_ = -1;
  std::uint32_t read_size_ = 0;  ///< The size of the next read, estimated from the last one.
  std::array<class SocketWait*, 2> waits_{};  ///< The waits to read and to write.
  /// Owned. A raw pointer, because the type is incomplete here.
  const ProxyHeader* proxy_header_ = nullptr;
};

/// A task's wait on a socket: an operation that is cancelled when the task is asked to stop or the
/// socket is closed. It may be moved until it is awaited.
class SocketWait : protected detail::IoOperation {
 public:
  SocketWait& operator=(SocketWait&&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    awaiting_ = awaiting;
    if (!await_or_finish()) return false;
    stop_.emplace(awaiting.promise().context().stop, Stop{*this});
    return true;
  }

 protected:
  /// Waits to write if `readiness` is Events::write, otherwise to read.
  SocketWait(Socket& socket, Events readiness, detail::FirstCall first) noexcept
      : IoOperation(readiness, first), socket_(&socket), to_write_(readiness == Events::write) {}
  SocketWait(SocketWait&& other) noexcept
      : IoOperation(static_cast<IoOperation&&>(other)),
        socket_(std::exchange(other.socket_, nullptr)),
        to_write_(other.to_write_) {
    check_not_awaited(other.awaiting_, "a function of a stream or socket");
  }
  ~SocketWait() override { leave(); }

  /// Null if the socket was closed.
  [[nodiscard]] Socket* socket() const noexcept { return socket_; }

  /// Resumes the awaiting task.
  void completed() override;
  /// Called when the socket is closed, moved to another loop, or stops the wait, which must then
  /// end.
  virtual void detached() noexcept { cancel(); }

  /// Starts the operation and registers it with its socket. Returns false if it finished at once.
  [[nodiscard]] bool await_or_finish() noexcept;
  /// The same without registering it. Returns true if it finished at once, with `outcome`.
  /// Otherwise it is pending, but the socket cannot cancel it: the caller must destroy it or
  /// register it.
  [[nodiscard]] bool try_now() noexcept;
  void leave() noexcept;

 private:
  friend class Socket;
  struct Stop {
    SocketWait& self;
    void operator()() const noexcept { self.cancel(); }
  };

  Socket* socket_;
  bool to_write_;
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

/// A connected byte stream whose reads and writes are awaited by tasks.
class Stream : public Socket {
 public:
  using Socket::Socket;
  Stream() = default;
  explicit Stream(Socket&& socket) noexcept : Socket(std::move(socket)) {}

  class Read final : public SocketWait {
   public:
    Read(Stream& stream, std::span<std::byte> into) noexcept
        : SocketWait(stream, Events::read, detail::FirstCall::when_ready), into_(into) {}
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(loop::Core& core) noexcept override;

    std::span<std::byte> into_;
  };

  /// Waits for data and returns the number of bytes read; 0 means end of file: the peer has closed
  /// or half-closed the connection. Fails with ECONNRESET and other errors of recv(2) or read(2),
  /// and with ECANCELED.
  [[nodiscard]] Read read(std::span<std::byte> into) noexcept { return {*this, into}; }

  class ReadBuffer : public SocketWait {
   public:
    ReadBuffer(Stream& stream, Buffer& into, std::size_t most) noexcept
        : SocketWait(stream, Events::read, detail::FirstCall::when_ready),
          into_(into),
          most_(most > 0 ? most : 1) {}
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept;

   protected:
    [[nodiscard]] bool step(loop::Core& core) noexcept override;

    Buffer& into_;

   private:
    std::size_t most_;
  };

  /// The same, but appends up to `most` bytes to `into`. Allocates memory only when data has
  /// arrived.
  [[nodiscard]] ReadBuffer read(Buffer& into, std::size_t most = std::size_t{256} * 1024) noexcept {
    return {*this, into, most};
  }

  class Write final : public SocketWait {
   public:
    Write(Stream& stream, std::span<const std::byte> from) noexcept
        : SocketWait(stream, Events::write, stream.first_write()), from_(from) {}
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(loop::Core& core) noexcept override;

    std::span<const std::byte> from_;
  };

  /// Waits until the kernel has accepted all bytes, which the caller owns and must keep valid until
  /// then. Fails with EPIPE or ECONNRESET if the peer has closed the connection, never with
  /// SIGPIPE; the number of bytes written before the error is not reported.
  [[nodiscard]] Write write(std::span<const std::byte> from) noexcept { return {*this, from}; }
  [[nodiscard]] Write write(std::string_view text) noexcept {
    return {*this, std::as_bytes(std::span(text))};
  }

  class WriteBuffer final : public SocketWait {
   public:
    WriteBuffer(Stream& stream, Buffer& from) noexcept
        : SocketWait(stream, Events::write, stream.first_write()), from_(from) {}
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool step(loop::Core& core) noexcept override;

    Buffer& from_;
  };

  /// The same for a buffer. Bytes that the kernel has accepted are removed from its front.
  [[nodiscard]] WriteBuffer write(Buffer& from) noexcept { return {*this, from}; }

  /// Shuts down the write side, so that the peer reads end of file: shutdown(2), SHUT_WR.
  [[nodiscard]] Result<> shutdown_write() noexcept;

 private:
  /// A file that is not a socket may be impossible to watch.
  [[nodiscard]] detail::FirstCall first_write() const noexcept {
    return is_socket_ ? detail::FirstCall::within_budget : detail::FirstCall::at_once;
  }
};

}  // namespace tambour
