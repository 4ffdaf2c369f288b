// Unix-domain stream sockets (unix(7)) for processes of one machine. In addition to bytes they
// report the peer's credentials and pass file descriptors.
#pragma once

#include <sys/types.h>

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// The credentials of the peer process at the time of its connect(2), listen(2) or socketpair(2).
struct PeerCredentials {
  pid_t process;
  uid_t user;
  gid_t group;

  bool operator==(const PeerCredentials&) const = default;
};

/// A Unix-domain stream.
class UnixStream final : public SocketStream {
 public:
  UnixStream() = default;
  /// Takes ownership of `fd`, a connected stream socket.
  UnixStream(EventLoop& loop, int fd) noexcept : SocketStream(loop, fd) {}
  /// `stream` must not be a TcpStream.
  template <std::derived_from<SocketStream> S>
    requires(detail::is_stream_of_any_family<S>)
  explicit UnixStream(S&& stream) noexcept : SocketStream(std::forward<S>(stream)) {}

  /// Connects on the loop of the awaiting task. Fails with ECONNREFUSED if no server listens on the
  /// name, with ENOENT, with EAGAIN if the listener's backlog is full, and with EAFNOSUPPORT if
  /// `to` is not a Unix name.
  [[nodiscard]] static Task<Result<UnixStream>> connect(Endpoint to);

  /// Creates two connected streams (socketpair(2)), for example to communicate with a child
  /// process.
  [[nodiscard]] static Result<std::pair<UnixStream, UnixStream>> pair(EventLoop& loop) noexcept;

  /// The peer's credentials: SO_PEERCRED.
  [[nodiscard]] Result<PeerCredentials> peer_credentials() const noexcept;

  /// The maximum number of file descriptors per message (SCM_MAX_FD).
  static constexpr std::size_t descriptors_max = 253;

  /// Sends `bytes` and, with the first of them, copies of `descriptors`, which the caller still
  /// owns. The bytes and the list must stay valid until the task has finished. Fails with EINVAL if
  /// `bytes` is empty or there are too many descriptors, with EBADF if one is not open, and with
  /// ETOOMANYREFS if too many are in flight.
  [[nodiscard]] Task<Result<>> send(std::span<const std::byte> bytes,
                                    std::span<const int> descriptors);

  /// What receive() returns.
  struct Received {
    std::size_t size = 0;               ///< The number of bytes; 0: end of file.
    std::vector<UniqueFd> descriptors;  ///< Close-on-exec.
    /// The peer sent more file descriptors than `limit`, or more than the process may open
    /// (EMFILE). The kernel has closed the missing ones.
    bool are_descriptors_truncated = false;
  };

  /// The default limit of receive().
  static constexpr std::size_t receive_limit = 32;

  /// Waits for bytes and for the file descriptors that were sent with the first of them. Returns at
  /// most `limit` descriptors, and never more than `descriptors_max`, so that a peer cannot fill
  /// the process's descriptor table; the kernel closes the rest without opening them in this
  /// process. If descriptors arrive during another kind of read, the kernel closes them.
  [[nodiscard]] Task<Result<Received>> receive(std::span<std::byte> into,
                                               std::size_t limit = receive_limit);

  /// Returns true if a Unix stream can connect to, or listen on, `endpoint`.
  static bool supports(const Endpoint& endpoint) noexcept { return !endpoint.is_ip(); }
};

}  // namespace tambour

#pragma GCC visibility pop
