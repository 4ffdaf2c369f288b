// Unix datagram sockets: unix(7). Datagrams of processes on one machine, for example of loggers and
// service managers.
//
// They arrive whole and in order, and none is lost: if the receiver's queue is full
// (net.unix.max_dgram_qlen, 10 datagrams), senders wait. A datagram is limited by the send buffer,
// about 200 KiB by default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/io_handle.h>
#include <tambour/net/unix_datagram_batch.h>
#include <tambour/net/unix_stream.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// The options of a UnixDatagramSocket.
struct UnixDatagramOptions {
  /// SO_RCVBUF and SO_SNDBUF, capped by the system's maximum. 0: the system's default.
  std::size_t receive_buffer_bytes = 0;
  std::size_t send_buffer_bytes = 0;
  /// Sets Received::credentials to the process, user and group of each sender: SO_PASSCRED. The
  /// socket gets an abstract name when it sends, if it has none.
  bool credentials = false;
};

/// A Unix datagram socket.
///
/// Ownership: owns the file descriptor and closes it on destruction. A path that it is bound to
/// stays in the file system: remove it (unlink(2)) after closing, and before binding to it again.
/// Lifetime: may be moved at any time, except while a task awaits it.
/// Thread: must be used on the loop's thread. One task may receive, and one send, at a time.
class UnixDatagramSocket final : public IoHandle {
 public:
  UnixDatagramSocket() = default;
  /// Takes ownership of `fd`, a Unix datagram socket.
  UnixDatagramSocket(EventLoop& loop, int fd) noexcept;

  /// Opens a socket without a name: it can send, but other sockets cannot send to it.
  [[nodiscard]] static Result<UnixDatagramSocket> open(
      EventLoop& loop, const UnixDatagramOptions& options = {}) noexcept;
  /// A socket with a name, to which others can send: a path, or an abstract name, which vanishes
  /// with the socket: Endpoint::unix_name("@name"). Fails with EADDRINUSE if the name exists,
  /// EACCES, ENOENT, and with EAFNOSUPPORT if `at` is an IP address.
  [[nodiscard]] static Result<UnixDatagramSocket> bind(
      EventLoop& loop, const Endpoint& at, const UnixDatagramOptions& options = {}) noexcept;
  /// Two connected sockets: socketpair(2).
  [[nodiscard]] static Result<std::pair<UnixDatagramSocket, UnixDatagramSocket>> pair(
      EventLoop& loop, const UnixDatagramOptions& options = {}) noexcept;

  /// Closes the socket. Waits on it fail with ECANCELED. No effect on a closed socket.
  using IoHandle::close;
  /// Releases ownership of the file descriptor and returns it.
  using IoHandle::release;

  /// The own name, and that of the peer of a connected socket: getsockname(2), getpeername(2).
  [[nodiscard]] Result<Endpoint> local_endpoint() const noexcept;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const noexcept;

  /// Connects the socket: it then sends to `to` and receives only from it. Fails with ECONNREFUSED
  /// if no socket is bound to the name, ENOENT, EACCES; with EPROTOTYPE if it is a stream socket,
  /// and with EPERM if it is connected to another socket.
  [[nodiscard]] Result<> connect(const Endpoint& to) noexcept;

  /// What receive() returns.
  struct Received {
    std::size_t size = 0;                 ///< The number of bytes. A datagram may be empty.
    bool is_truncated = false;            ///< It was longer: the rest is lost.
    Endpoint from{};                      ///< address() is empty if the sender has no name.
    std::vector<UniqueFd> descriptors{};  ///< Close-on-exec.
    /// More descriptors were sent than `descriptors_max`, or than this process may open.
    bool are_descriptors_truncated = false;
    std::optional<PeerCredentials> credentials{};  ///< UnixDatagramOptions::credentials.
  };
  /// Waits for a datagram. Returns at most `descriptors_max` file descriptors that were sent with
  /// it, and closes others. Fails with ECANCELED.
  [[nodiscard]] Task<Result<Received>> receive(std::span<std::byte> into,
                                               std::size_t descriptors_max = 0);
  /// Waits for datagrams, receives those that are available and fit into the batch with one system
  /// call, and returns their number, at least one. Descriptors that were sent with them are closed.
  [[nodiscard]] Task<Result<std::size_t>> receive(UnixDatagramBatch& into);

  /// Waits until the datagram is in the receiver's queue. If that is full, a connected socket is
  /// woken up when there is room; for send_to() the kernel has no such event, so the socket tries
  /// again after 1 ms, and later every 50 ms. Sends copies of `descriptors`, which the caller still
  /// owns. The bytes and the list must stay valid until the task has ended. Fails with ECONNREFUSED
  /// if no socket has the name any more, ENOENT, EMSGSIZE, EPERM, ENOTCONN, EDESTADDRREQ,
  /// EAFNOSUPPORT; with EINVAL if there are more than UnixStream::descriptors_max descriptors.
  [[nodiscard]] Task<Result<>> send_to(std::span<const std::byte> bytes, Endpoint to,
                                       std::span<const int> descriptors = {});
  [[nodiscard]] Task<Result<>> send(std::span<const std::byte> bytes,
                                    std::span<const int> descriptors = {});
  /// Sends the whole batch, which is then empty. If a datagram fails, those before it have been
  /// sent, and it is the first of the batch: call drop_front(), or send again.
  [[nodiscard]] Task<Result<>> send(UnixDatagramBatch& from);

  /// For callbacks: fail with EAGAIN if the receiver's queue is full.
  [[nodiscard]] Result<> try_send_to(std::span<const std::byte> bytes, const Endpoint& to) noexcept;
  [[nodiscard]] Result<> try_send(std::span<const std::byte> bytes) noexcept;

 private:
  [[nodiscard]] Result<> set_options(const UnixDatagramOptions& options) noexcept;

  bool has_credentials_ = false;  ///< SO_PASSCRED
};

}  // namespace tambour

#pragma GCC visibility pop
