// UnixDatagramSocket: opening, and sending and receiving datagrams alone and in batches.
#include <tambour/net/unix_datagram.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include <tambour/detail/first_call.h>
#include <tambour/loop/event_loop.h>
#include <tambour/net/socket.h>
#include <tambour/task/sleep.h>

#include "backend/system.h"
#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/ancillary_data.h"
#include "net/datagram_headers.h"
#include "net/socket_calls.h"

namespace tambour {
namespace {

using detail::base::failure;
using detail::base::result_of;

constexpr int receive_flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
constexpr Duration pause_min = std::chrono::milliseconds(1);
constexpr Duration pause_max = std::chrono::milliseconds(50);

/// Makes one system call, `call(system, fd)`, when it does not block.
template <class Function>
class CallWhenReady final : public detail::IoWait {
 public:
  CallWhenReady(IoHandle& socket, Events readiness, Function call) noexcept
      : IoWait(socket, readiness,
               readiness == Events::write ? detail::FirstCall::within_budget
                                          : detail::FirstCall::when_ready),
        call_(call) {}
  [[nodiscard]] std::int32_t await_resume() const noexcept { return outcome; }

 private:
  [[nodiscard]] bool step(detail::loop::Core& core) noexcept override {
    return finish(
        detail::io::retry([&]() -> ssize_t { return call_(core.backend().system(), fd()); }));
  }

  Function call_;
};

Endpoint endpoint_of(const sockaddr_un& name, socklen_t size) noexcept {
  const sockaddr_un unnamed{.sun_family = AF_UNIX, .sun_path = {}};
  const bool has_name = size > sizeof(sa_family_t);
  const auto* const address = reinterpret_cast<const sockaddr*>(has_name ? &name : &unnamed);
  return Endpoint::from(address, has_name ? size : sizeof(sa_family_t)).value_or(Endpoint());
}

void set_destination(msghdr& message, const Endpoint* to) noexcept {
  if (to == nullptr) return;
  message.msg_name = const_cast<sockaddr*>(to->data());  // NOLINT: sendmsg(2) reads it.
  message.msg_namelen = to->size();
}

std::int32_t send_at_once(detail::backend::System& system, int fd, std::span<const std::byte> bytes,
                          const Endpoint* to) noexcept {
  iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()),  // NOLINT: sendmsg(2) reads.
              .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  set_destination(message, to);
  return detail::io::retry([&] { return system.sendmsg(fd, &message, send_flags); });
}

constexpr std::size_t rights_bytes = UnixStream::descriptors_max * sizeof(int);

/// A message with a control buffer. Must not be moved after prepare().
struct DatagramMessage {
  iovec piece{};
  sockaddr_un name{};
  msghdr header{};
  alignas(cmsghdr)
      std::array<std::byte, CMSG_SPACE(rights_bytes) + CMSG_SPACE(sizeof(ucred))> control{};

  void prepare() noexcept {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

}  // namespace

UnixDatagramSocket::UnixDatagramSocket(EventLoop& loop, int fd) noexcept : IoHandle(loop, fd) {
  int value = 0;
  socklen_t size = sizeof(value);
  has_credentials_ =
      system().getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, &size) == 0 && value != 0;
}

Result<> UnixDatagramSocket::set_options(const UnixDatagramOptions& options) noexcept {
  const auto set = [&](int name, std::size_t value) {
    const auto number = static_cast<int>(std::min<std::size_t>(value, INT_MAX));
    return detail::net::set_option(system(), fd(), SOL_SOCKET, name, number);
  };
  Result<> done;
  if (options.receive_buffer_bytes != 0) done = set(SO_RCVBUF, options.receive_buffer_bytes);
  if (done && options.send_buffer_bytes != 0) done = set(SO_SNDBUF, options.send_buffer_bytes);
  if (done && options.credentials) done = set(SO_PASSCRED, 1);
  has_credentials_ = done && options.credentials;
  return done;
}

Result<UnixDatagramSocket> UnixDatagramSocket::open(EventLoop& loop,
                                                    const UnixDatagramOptions& options) noexcept {
  auto opened = Socket::open(loop, AF_UNIX, SOCK_DGRAM);
  if (!opened) return std::unexpected(opened.error());
  UnixDatagramSocket socket(loop, opened->release());
  if (auto set = socket.set_options(options); !set) return std::unexpected(set.error());
  return socket;
}

Result<UnixDatagramSocket> UnixDatagramSocket::bind(EventLoop& loop, const Endpoint& at,
                                                    const UnixDatagramOptions& options) noexcept {
  if (at.is_ip()) return failure(EAFNOSUPPORT);
  auto socket = open(loop, options);
  if (!socket) return socket;
  if (socket->system().bind(socket->fd(), at.data(), at.size()) != 0) return failure(errno);
  return socket;
}

Result<std::pair<UnixDatagramSocket, UnixDatagramSocket>> UnixDatagramSocket::pair(
    EventLoop& loop, const UnixDatagramOptions& options) noexcept {
  std::array<int, 2> ends{};
  auto& system = detail::loop::core_of(loop).backend().system();
  constexpr int type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  if (system.socketpair(AF_UNIX, type, 0, ends.data()) != 0) return failure(errno);
  std::pair sockets(UnixDatagramSocket(loop, ends[0]), UnixDatagramSocket(loop, ends[1]));
  for (UnixDatagramSocket* const socket : {&sockets.first, &sockets.second}) {
    if (auto set = socket->set_options(options); !set) return std::unexpected(set.error());
  }
  return sockets;
}

Result<Endpoint> UnixDatagramSocket::local_endpoint() const noexcept {
  if (!is_open()) return failure(EBADF);
  return detail::net::local_endpoint(system(), fd());
}

Result<Endpoint> UnixDatagramSocket::peer_endpoint() const noexcept {
  if (!is_open()) return failure(EBADF);
  return detail::net::peer_endpoint(system(), fd());
}

Result<> UnixDatagramSocket::connect(const Endpoint& to) noexcept {
  if (!is_open()) return failure(EBADF);
  if (to.is_ip()) return failure(EAFNOSUPPORT);
  if (system().connect(fd(), to.data(), to.size()) != 0) return failure(errno);
  return {};
}

Task<Result<UnixDatagramSocket::Received>> UnixDatagramSocket::receive(
    std::span<std::byte> into, std::size_t descriptors_max) {
  DatagramMessage message;
  message.piece = {.iov_base = into.data(), .iov_len = into.size()};
  const std::size_t limit = std::min(descriptors_max, UnixStream::descriptors_max);
  const auto receive_now = [&](detail::backend::System& system, int fd) {
    message.prepare();
    message.header.msg_name = &message.name;
    message.header.msg_namelen = sizeof(message.name);
    // CMSG_LEN, not CMSG_SPACE: Linux would put one more descriptor into the padding.
    message.header.msg_controllen = (has_credentials_ ? CMSG_SPACE(sizeof(ucred)) : 0) +
                                    (limit != 0 ? CMSG_LEN(limit * sizeof(int)) : 0);
    return system.recvmsg(fd, &message.header, receive_flags);
  };
  CallWhenReady call(*this, Events::read, receive_now);
  const std::int32_t size = co_await call;
  if (size < 0) co_return failure(size);
  Received received;
  received.size = static_cast<std::size_t>(size);
  received.is_truncated = (message.header.msg_flags & MSG_TRUNC) != 0;
  received.from = endpoint_of(message.name, message.header.msg_namelen);
  received.descriptors = detail::net::take_descriptors(message.header);
  received.are_descriptors_truncated = (message.header.msg_flags & MSG_CTRUNC) != 0;
  received.credentials = detail::net::credentials_of(message.header);
  co_return std::move(received);
}

Task<Result<std::size_t>> UnixDatagramSocket::receive(UnixDatagramBatch& into) {
  into.clear();
  detail::net::DatagramHeaders& headers = *into.headers_;
  const std::size_t count = headers.messages.size();
  for (std::size_t i = 0; i < count; ++i) {
    headers.pieces[i] = {.iov_base = into.memory_.get() + i * into.bytes_each_,
                         .iov_len = into.bytes_each_};
    msghdr& message = headers.messages[i].msg_hdr;
    message = {};
    message.msg_iov = &headers.pieces[i];
    message.msg_iovlen = 1;
    message.msg_name = &headers.names[i];
    message.msg_namelen = sizeof(sockaddr_un);
  }
  const auto receive_now = [&](detail::backend::System& system, int fd) -> ssize_t {
    return system.recvmmsg(fd, headers.messages.data(), static_cast<unsigned>(count),
                           receive_flags);
  };
  CallWhenReady call(*this, Events::read, receive_now);
  const std::int32_t received = co_await call;
  if (received < 0) co_return failure(received);
  for (std::size_t i = 0; i < static_cast<std::size_t>(received); ++i) {
    const msghdr& message = headers.messages[i].msg_hdr;
    const auto* const place = static_cast<const std::byte*>(headers.pieces[i].iov_base);
    const std::size_t size = std::min<std::size_t>(headers.messages[i].msg_len, into.bytes_each_);
    into.datagrams_.push_back({.bytes = {place, size},
                               .address = endpoint_of(headers.names[i], message.msg_namelen),
                               .is_truncated = (message.msg_flags & MSG_TRUNC) != 0});
  }
  co_return into.size();
}

namespace {

/// Sends a message. `is_connected`: the kernel reports when the receiver has room.
template <class Send>
Task<std::int32_t> send_when_possible(IoHandle& socket, Send send_now, bool is_connected) {
  for (Duration pause = pause_min;; pause = std::min(pause * 2, pause_max)) {
    if (is_connected) {
      CallWhenReady call(socket, Events::write, send_now);
      co_return co_await call;
    }
    // The receiver's queue is full. The own socket is writable nevertheless, so waiting for that
    // would spin.
    auto convert = [&](detail::backend::System& system, int fd) -> ssize_t {
      const ssize_t answer = send_now(system, fd);
      if (answer >= 0 || errno != EAGAIN) return answer;
      errno = ENOBUFS;  // Not used by Unix sockets: ends the wait.
      return -1;
    };
    CallWhenReady call(socket, Events::write, convert);
    const std::int32_t answer = co_await call;
    if (answer != -ENOBUFS) co_return answer;
    const auto slept = co_await sleep_for(pause);
    if (!slept) co_return -ECANCELED;
  }
}

Task<Result<>> send_message(IoHandle& socket, std::span<const std::byte> bytes, const Endpoint* to,
                            std::span<const int> descriptors) {
  if (descriptors.size() > UnixStream::descriptors_max) co_return failure(EINVAL);
  DatagramMessage message;
  message.piece = {.iov_base = const_cast<std::byte*>(bytes.data()),  // NOLINT: reads.
                   .iov_len = bytes.size()};
  message.prepare();
  detail::net::put_descriptors(message.header, descriptors);
  set_destination(message.header, to);
  const auto send_now = [&](detail::backend::System& system, int fd) {
    return system.sendmsg(fd, &message.header, send_flags);
  };
  co_return result_of(co_await send_when_possible(socket, send_now, to == nullptr));
}

}  // namespace

Task<Result<>> UnixDatagramSocket::send_to(std::span<const std::byte> bytes, Endpoint to,
                                           std::span<const int> descriptors) {
  if (to.is_ip()) co_return failure(EAFNOSUPPORT);
  co_return co_await send_message(*this, bytes, &to, descriptors);
}

Task<Result<>> UnixDatagramSocket::send(std::span<const std::byte> bytes,
                                        std::span<const int> descriptors) {
  co_return co_await send_message(*this, bytes, nullptr, descriptors);
}

Task<Result<>> UnixDatagramSocket::send(UnixDatagramBatch& from) {
  detail::net::DatagramHeaders& headers = *from.headers_;
  while (!from.empty()) {
    const std::size_t count = from.size();
    for (std::size_t i = 0; i < count; ++i) {
      const UnixDatagram& datagram = from[i];
      headers.pieces[i] = {
          .iov_base = const_cast<std::byte*>(datagram.bytes.data()),  // NOLINT: reads.
          .iov_len = datagram.bytes.size()};
      msghdr& message = headers.messages[i].msg_hdr;
      message = {};
      message.msg_iov = &headers.pieces[i];
      message.msg_iovlen = 1;
      set_destination(message, datagram.address ? &*datagram.address : nullptr);
    }
    const auto send_now = [&](detail::backend::System& system, int fd) -> ssize_t {
      return system.sendmmsg(fd, headers.messages.data(), static_cast<unsigned>(count), send_flags);
    };
    const std::int32_t sent =
        co_await send_when_possible(*this, send_now, !from[0].address.has_value());
    if (sent < 0) co_return failure(sent);
    from.first_ += static_cast<std::size_t>(sent);
  }
  from.clear();
  co_return Result<>();
}

Result<> UnixDatagramSocket::try_send_to(std::span<const std::byte> bytes,
                                         const Endpoint& to) noexcept {
  if (!is_open()) return failure(EBADF);
  if (to.is_ip()) return failure(EAFNOSUPPORT);
  return result_of(send_at_once(system(), fd(), bytes, &to));
}

Result<> UnixDatagramSocket::try_send(std::span<const std::byte> bytes) noexcept {
  if (!is_open()) return failure(EBADF);
  return result_of(send_at_once(system(), fd(), bytes, nullptr));
}

}  // namespace tambour
