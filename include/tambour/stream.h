// A connected byte stream: TCP, Unix-domain sockets, one end of a socket pair.
//
// An idle stream holds its descriptor and nothing else. Reading and writing are waits of a task;
// one task may read and one may write at a time. The trap: the peer decides how the bytes are cut,
// and a read gives what is there.
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
#include <tambour/endpoint.h>
#include <tambour/io_operation.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

class EventLoop;
struct ProxyHeader;
class Stream;

/// Owns a socket of a loop. Moves freely, also while it is used; destroying it closes the socket.
class Socket {
 public:
  Socket() = default;
  /// Owns `fd` from now on, which must be non-blocking where it is not a socket.
  Socket(EventLoop& loop, int fd) noexcept;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Opens one: socket(2).
  static Result<Socket> open(EventLoop& loop, int family, int type, int protocol = 0) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  /// It stays the socket's. -1 where that is closed.
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] EventLoop& loop() const noexcept { return *loop_; }

  /// Whoever waits for it is told ECANCELED. More than once is harmless.
  void close() noexcept;

  /// Gives the descriptor away; whoever waits is told ECANCELED.
  [[nodiscard]] int release() noexcept;

  /// Gives the socket, and what a proxy has said, to another loop, and calls `then` with it there;
  /// this one is closed. Whoever waits for it is told ECANCELED. Where that loop ends first, so
  /// does the socket. Throws std::bad_alloc. For streams and tasks there is spawn_on(), in
  /// <tambour/spawn_on.h>.
  void move_to(EventLoop& to, Callback<void(Socket)> then);

  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  /// Of a proxied stream, whose the proxy says it is.
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;

  /// What a proxy has said in front of the stream; null where nobody did. See proxy_protocol.h:
  /// servers that require it set it, and so may whoever has read one.
  [[nodiscard]] const ProxyHeader* proxy_header() const noexcept { return proxy_header_; }
  void set_proxy_header(std::unique_ptr<const ProxyHeader> header) noexcept;

  /// setsockopt(2) with an int.
  Result<> set_option(int level, int option, int value) noexcept;

 protected:
  /// Whoever waits to write, or to read, is told ECANCELED.
  void stop_waiting(bool to_write) noexcept;
  friend class Connection;
  friend class SocketWait;
  friend class Stream;
  class SocketWait*& waiting(bool to_write) noexcept { return waits_[to_write ? 1 : 0]; }
  [[nodiscard]] backend::System& system() const noexcept { return *system_; }

  /// A pipe or terminal is none: recv(2) and send(2) fail there, and read(2) and write(2) serve.
  bool is_socket_ = true;
  /// O_NONBLOCK was set on an open file that other processes may share, and is cleared again.
  bool restores_blocking_ = false;

 private:
  EventLoop* loop_ = nullptr;
  backend::System* system_ = nullptr;
  int fd_ = -1;
  std::uint32_t read_size_ = 0;               ///< What the last read suggests for the next.
  std::array<class SocketWait*, 2> waits_{};  ///< Who waits to read, and to write.
  /// Owned; here the type need not be known.
  const ProxyHeader* proxy_header_ = nullptr;
};

/// What waits for a socket inside a task: an operation, told to stop with the task, or with the
/// socket.
class SocketWait : protected IoOperation {
 public:
  SocketWait(const SocketWait&) = delete;
  SocketWait& operator=(const SocketWait&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    awaiting_ = awaiting;
    if (!begin()) return false;
    stop_.emplace(awaiting.promise().context().stop, Stop{*this});
    return true;
  }

 protected:
  SocketWait(Socket& socket, IoKind what, bool to_write) noexcept
      : IoOperation(what, &completed), socket_(&socket), to_write_(to_write) {}
  ~SocketWait() { leave(); }

  /// Null where it was closed.
  [[nodiscard]] Socket* socket() const noexcept { return socket_; }

  /// Whether more is to be done, `outcome` being no error. The next operation's parameters are set.
  [[nodiscard]] virtual bool go_on() noexcept { return false; }
  /// Whether to try again otherwise, `outcome` being an error.
  [[nodiscard]] virtual bool recover() noexcept { return false; }
  /// It is done, or has failed: resumes who awaits it.
  virtual void finish();
  /// Its socket has forgotten it, and it is to end.
  virtual void let_go() noexcept { cancel(); }

  /// False where it was done at once.
  [[nodiscard]] bool begin() noexcept;
  /// The same for who does not wait: true where it is done, with `outcome`; otherwise it waits
  /// unseen by the socket, and is to be destroyed or told to the socket.
  [[nodiscard]] bool try_now() noexcept;
  void leave() noexcept;

 private:
  friend class Socket;
  struct Stop {
    SocketWait& self;
    void operator()() const noexcept { self.cancel(); }
  };

  static void completed(IoOperation& operation);

  Socket* socket_;
  bool to_write_;
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

class Stream : public Socket {
 public:
  using Socket::Socket;
  Stream() = default;
  explicit Stream(Socket&& socket) noexcept : Socket(std::move(socket)) {}

  class Read final : public SocketWait {
   public:
    Read(Stream& stream, std::span<std::byte> into) noexcept
        : SocketWait(stream, stream.is_socket_ ? IoKind::recv : IoKind::read, false) {
      data = into.data();
      size = into.size();
    }
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept;
  };

  /// Waits for bytes; 0: the peer has sent all that it will. ECONNRESET and the like; ECANCELED.
  [[nodiscard]] Read read(std::span<std::byte> into) noexcept { return {*this, into}; }

  class ReadBuffer : public SocketWait {
   public:
    ReadBuffer(Stream& stream, Buffer& into, std::size_t most) noexcept;
    [[nodiscard]] Result<std::size_t> await_resume() noexcept;

   protected:
    [[nodiscard]] bool go_on() noexcept override;

    Buffer& into_;

   private:
    static bool prepare(IoOperation& operation) noexcept;

    std::size_t most_;
  };

  /// The same, to the end of `into`, up to `most` bytes. Takes memory only when there are some.
  [[nodiscard]] ReadBuffer read(Buffer& into, std::size_t most = std::size_t{256} * 1024) noexcept {
    return {*this, into, most};
  }

  class Write final : public SocketWait {
   public:
    Write(Stream& stream, std::span<const std::byte> from) noexcept
        : SocketWait(stream, stream.is_socket_ ? IoKind::send : IoKind::write, true) {
      data = const_cast<std::byte*>(from.data());  // NOLINT: send(2) reads.
      size = from.size();
    }
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    [[nodiscard]] bool go_on() noexcept override;
  };

  /// Waits until the kernel has taken all of it. EPIPE, ECONNRESET where the peer is gone (never
  /// SIGPIPE); how much was taken by then is not known. The bytes are the caller's, and stay.
  [[nodiscard]] Write write(std::span<const std::byte> from) noexcept { return {*this, from}; }
  [[nodiscard]] Write write(std::string_view text) noexcept {
    return {*this, std::as_bytes(std::span(text))};
  }

  class WriteBuffer final : public SocketWait {
   public:
    WriteBuffer(Stream& stream, Buffer& from) noexcept;
    [[nodiscard]] Result<> await_resume() const noexcept;

   private:
    static bool prepare(IoOperation& operation) noexcept;
    [[nodiscard]] bool go_on() noexcept override;

    Buffer& from_;
  };

  /// The same for a buffer, from whose front is dropped what was taken.
  [[nodiscard]] WriteBuffer write(Buffer& from) noexcept { return {*this, from}; }

  /// Tells the peer that nothing more will be sent: shutdown(2), SHUT_WR.
  Result<> finish() noexcept;
};

}  // namespace tambour
