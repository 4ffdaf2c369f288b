// UnixStream: connecting, credentials of the peer, and passing descriptors.
#include <tambour/net/unix_stream.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <tambour/detail/first_call.h>
#include <tambour/loop/event_loop.h>

#include "backend/system.h"
#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/ancillary_data.h"
#include "net/connect.h"

namespace tambour {
namespace {

constexpr std::size_t descriptors_bytes = UnixStream::descriptors_max * sizeof(int);

/// Sends bytes, the first of them together with file descriptors; or receives one message.
class Message final : public detail::IoWait {
 public:
  Message(UnixStream& stream, std::span<const std::byte> bytes, std::span<const int> descriptors)
      : Message(stream, Events::write,
                const_cast<std::byte*>(bytes.data()),  // NOLINT: reads.
                bytes.size()) {
    detail::net::put_descriptors(message_, descriptors);
  }

  Message(UnixStream& stream, std::span<std::byte> into, std::size_t limit) noexcept
      : Message(stream, Events::read, into.data(), into.size()) {
    // CMSG_LEN, not CMSG_SPACE: Linux would put one more descriptor into the padding.
    message_.msg_controllen =
        limit == 0 ? 0 : CMSG_LEN(std::min(limit, UnixStream::descriptors_max) * sizeof(int));
  }

  [[nodiscard]] std::int32_t await_resume() const noexcept { return outcome; }

  [[nodiscard]] bool is_truncated() const noexcept {
    return (message_.msg_flags & MSG_CTRUNC) != 0;
  }

  /// Throws std::bad_alloc after closing them.
  [[nodiscard]] std::vector<UniqueFd> take_descriptors() {
    return detail::net::take_descriptors(message_);
  }

 private:
  Message(UnixStream& stream, Events readiness, std::byte* bytes, std::size_t count) noexcept
      : detail::IoWait(stream, readiness,
                       readiness == Events::write ? detail::FirstCall::within_budget
                                                  : detail::FirstCall::when_ready),
        piece_{.iov_base = bytes, .iov_len = count} {
    message_.msg_iov = &piece_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
  }

  [[nodiscard]] bool step(detail::loop::Core& core) noexcept override {
    return readiness() == Events::write ? send(core) : receive(core.backend().system());
  }

  [[nodiscard]] bool receive(detail::backend::System& system) noexcept {
    constexpr int flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
    return finish(detail::io::retry([&] { return system.recvmsg(fd(), &message_, flags); }));
  }

  /// The stream may be moved between two calls, so nothing here refers to it.
  [[nodiscard]] bool send(detail::loop::Core& core) noexcept {
    detail::backend::System& system = core.backend().system();
    constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    do {
      if (!finish(detail::io::retry([&] { return system.sendmsg(fd(), &message_, flags); })))
        return false;
      if (outcome < 0) return true;
      // The kernel has accepted the descriptors with the first byte.
      message_.msg_control = nullptr;
      message_.msg_controllen = 0;
      piece_.iov_base = static_cast<std::byte*>(piece_.iov_base) + outcome;
      piece_.iov_len -= static_cast<std::size_t>(outcome);
    } while (piece_.iov_len > 0 && may_continue(core));
    return piece_.iov_len == 0;
  }

  iovec piece_;
  msghdr message_{};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(descriptors_bytes)> control_{};
};

}  // namespace

Task<Result<UnixStream>> UnixStream::connect(Endpoint to) {
  if (!supports(to)) co_return detail::base::failure(EAFNOSUPPORT);
  auto stream = co_await detail::net::connect_stream(to);
  if (!stream) co_return std::unexpected(stream.error());
  co_return UnixStream(std::move(*stream));
}

Result<std::pair<UnixStream, UnixStream>> UnixStream::pair(EventLoop& loop) noexcept {
  std::array<int, 2> ends{};
  auto& system = detail::loop::core_of(loop).backend().system();
  constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  if (system.socketpair(AF_UNIX, type, 0, ends.data()) != 0) return detail::base::failure(errno);
  return std::pair(UnixStream(loop, ends[0]), UnixStream(loop, ends[1]));
}

Result<PeerCredentials> UnixStream::peer_credentials() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (system().getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return detail::base::failure(errno);
  return PeerCredentials{.process = peer.pid, .user = peer.uid, .group = peer.gid};
}

Task<Result<>> UnixStream::send(std::span<const std::byte> bytes,
                                std::span<const int> descriptors) {
  if ((bytes.empty() && !descriptors.empty()) || descriptors.size() > descriptors_max)
    co_return detail::base::failure(EINVAL);
  if (tls() != nullptr) co_return detail::base::failure(EOPNOTSUPP);
  co_return detail::base::result_of(co_await Message(*this, bytes, descriptors));
}

Task<Result<UnixStream::Received>> UnixStream::receive(std::span<std::byte> into,
                                                       std::size_t limit) {
  if (tls() != nullptr) co_return detail::base::failure(EOPNOTSUPP);
  Message message(*this, into, limit);
  const std::int32_t got = co_await message;
  if (got < 0) co_return detail::base::failure(got);
  co_return Received{.size = static_cast<std::size_t>(got),
                     .descriptors = message.take_descriptors(),
                     .are_descriptors_truncated = message.is_truncated()};
}

}  // namespace tambour
