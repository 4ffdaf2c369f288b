// Streams over Unix-domain sockets (unix(7)): between processes of one machine, with what only they
// can do: tell who the peer is, and hand over descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/stream_server.h>
#include <tambour/task.h>
#include <tambour/unique_fd.h>

namespace tambour {

/// Who made the connection, or listens, at the time when it was made.
struct PeerCredentials {
  pid_t process;
  uid_t user;
  gid_t group;

  bool operator==(const PeerCredentials&) const = default;
};

class UnixStream final : public Stream {
 public:
  UnixStream() = default;
  /// Owns `fd`, a connected stream socket, from now on.
  UnixStream(EventLoop& loop, int fd) noexcept : UnixStream(Socket(loop, fd)) {}
  explicit UnixStream(Socket&& socket) noexcept : Stream(std::move(socket)) {}

  /// On the loop of the task that awaits. ECONNREFUSED: nobody listens there; ENOENT; EAGAIN where
  /// the listener's backlog is full; EAFNOSUPPORT for an address that is no Unix name.
  static Task<Result<UnixStream>> connect(Endpoint to);

  /// Two that are connected to each other (socketpair(2)), to talk with a child, say.
  static Result<std::pair<UnixStream, UnixStream>> pair(EventLoop& loop) noexcept;

  /// SO_PEERCRED.
  [[nodiscard]] Result<PeerCredentials> peer_credentials() const noexcept;

  /// How many descriptors one message can carry (SCM_MAX_FD).
  static constexpr std::size_t descriptors_max = 253;

  /// Sends `bytes`, and with the first of them copies of `descriptors`, which stay the caller's.
  /// EINVAL where there is no byte to go with them, or too many of them; EBADF where one is none;
  /// ETOOMANYREFS where too many are under way. The bytes and the list must stay until it is done.
  Task<Result<>> send(std::span<const std::byte> bytes, std::span<const int> descriptors);

  struct Received {
    std::size_t size = 0;               ///< Of the bytes; 0: the peer has sent all that it will.
    std::vector<UniqueFd> descriptors;  ///< Close-on-exec.
    /// The peer sent more descriptors than `limit`, or more than the process can have open
    /// (EMFILE). The kernel has closed the ones that are missing.
    bool truncated = false;
  };

  /// The default limit of receive().
  static constexpr std::size_t receive_limit = 32;

  /// Waits for bytes, and for the descriptors that came with the first of them, of which it takes
  /// at most `limit`, so that a peer cannot fill the process's table of descriptors; the kernel
  /// closes the others, and the process never has them open. At most `descriptors_max` come at a
  /// time, also with a higher limit. Descriptors that arrive during another kind of read are closed
  /// by the kernel, unseen.
  Task<Result<Received>> receive(std::span<std::byte> into, std::size_t limit = receive_limit);

  /// Whether it can be connected to, or listen at, `endpoint`.
  static bool takes(const Endpoint& endpoint) noexcept { return !endpoint.is_ip(); }
};

using UnixServer = StreamServer<UnixStream>;

}  // namespace tambour
