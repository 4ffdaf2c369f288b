// UdpSocket: opening, options, and sending and receiving in tasks. Multicast and callbacks are in
// files of their own.
#include <netinet/udp.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/net/socket.h>
#include <tambour/udp/socket.h>

#include "backend/system.h"
#include "base/failure.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/socket_calls.h"
#include "udp/datagram_piece.h"

namespace tambour {
namespace {

constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

/// Returns whether the kernel refused to segment the datagram: the device lacks checksum offload
/// (EIO), the segments exceed the path MTU (EMSGSIZE, on older kernels EINVAL), or there are too
/// many (EINVAL). Sent one by one, the datagrams may still succeed.
bool is_segmentation_refusal(std::int32_t outcome) noexcept {
  return outcome == -EIO || outcome == -EINVAL || outcome == -EMSGSIZE;
}

std::optional<int> option_of(detail::backend::System& system, int fd, int level,
                             int option) noexcept {
  int value = 0;
  socklen_t size = sizeof(value);
  if (system.getsockopt(fd, level, option, &value, &size) != 0) return std::nullopt;
  return value;
}

int as_int(std::size_t bytes) noexcept {
  return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX));
}

}  // namespace

UdpSocket::UdpSocket(EventLoop& loop, int fd) noexcept : IoHandle(loop, fd) {
  family_ = option_of(system(), fd, SOL_SOCKET, SO_DOMAIN).value_or(AF_UNSPEC);
  peer_is_v4_ = is_v4();
  // Kernels before 4.18 silently ignore unknown ancillary data, so support must be probed.
  can_segment_ = option_of(system(), fd, IPPROTO_UDP, UDP_SEGMENT).has_value();
  gro_ = option_of(system(), fd, IPPROTO_UDP, UDP_GRO).value_or(0) != 0;
}

Result<UdpSocket> UdpSocket::bind(EventLoop& loop, const Endpoint& at,
                                  const UdpOptions& options) noexcept {
  if (!at.is_ip()) return detail::base::failure(EAFNOSUPPORT);
  auto opened = Socket::open(loop, at.family(), SOCK_DGRAM);
  if (!opened) return std::unexpected(opened.error());
  UdpSocket socket(loop, opened->release());
  if (auto set = socket.set_options(options); !set) return std::unexpected(set.error());
  if (socket.system().bind(socket.fd(), at.data(), at.size()) != 0)
    return detail::base::failure(errno);
  return socket;
}

Result<Endpoint> UdpSocket::local_endpoint() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::local_endpoint(system(), fd());
}

Result<Endpoint> UdpSocket::peer_endpoint() const noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::peer_endpoint(system(), fd());
}

Result<> UdpSocket::set_option(int level, int option, int value) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  return detail::net::set_option(system(), fd(), level, option, value);
}

Result<> UdpSocket::set_ip_option(int v4_option, int v6_option, int value) noexcept {
  if (is_v4()) return set_option(IPPROTO_IP, v4_option, value);
  return set_option(IPPROTO_IPV6, v6_option, value);
}

Result<> UdpSocket::set_options(const UdpOptions& options) noexcept {
  Result<> set;
  const auto also = [&](bool wanted, auto&& function) {
    if (wanted && set) set = function();
  };
  const auto option = [this](int level, int name, int value = 1) {
    return [=, this] { return set_option(level, name, value); };
  };
  also(options.reuse_address, option(SOL_SOCKET, SO_REUSEADDR));
  also(options.reuse_port, option(SOL_SOCKET, SO_REUSEPORT));
  also(true, [&] { return detail::net::set_bind_options(system(), fd(), family_, options.bind); });
  also(options.broadcast, option(SOL_SOCKET, SO_BROADCAST));
  also(options.receive_buffer_bytes != 0,
       option(SOL_SOCKET, SO_RCVBUF, as_int(options.receive_buffer_bytes)));
  also(options.send_buffer_bytes != 0,
       option(SOL_SOCKET, SO_SNDBUF, as_int(options.send_buffer_bytes)));
  also(!is_v4(), option(IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0));
  also(options.ecn, [&] { return set_ip_option(IP_RECVTOS, IPV6_RECVTCLASS, 1); });
  also(options.pktinfo, [&] { return set_ip_option(IP_PKTINFO, IPV6_RECVPKTINFO, 1); });
  // A dual-stack IPv6 socket receives IPv4 datagrams with IPv4 ancillary data.
  const bool both = !is_v4() && !options.v6_only;
  also(both && options.ecn, option(IPPROTO_IP, IP_RECVTOS));
  also(both && options.pktinfo, option(IPPROTO_IP, IP_PKTINFO));
  // If the kernel does not support UDP_GRO, datagrams arrive one by one.
  if (options.gro && set) gro_ = set_option(IPPROTO_UDP, UDP_GRO, 1).has_value();
  return set;
}

Result<> UdpSocket::connect(const Endpoint& to) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  if (!to.is_ip()) return detail::base::failure(EAFNOSUPPORT);
  if (system().connect(fd(), to.data(), to.size()) != 0) return detail::base::failure(errno);
  const in6_addr address = detail::udp::address_of(to);
  peer_is_v4_ = IN6_IS_ADDR_V4MAPPED(&address) != 0;
  return {};
}

Result<> UdpSocket::disconnect() noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  const sockaddr unspecified{.sa_family = AF_UNSPEC, .sa_data = {}};
  const auto before = local_endpoint();
  if (system().connect(fd(), &unspecified, sizeof(unspecified)) != 0)
    return detail::base::failure(errno);
  const auto now = local_endpoint();
  if (!before || !now || now->port() == before->port()) return {};
  // Linux unbinds a port that the kernel had chosen.
  const Endpoint again = now->with_port(before->port());
  if (system().bind(fd(), again.data(), again.size()) != 0) return detail::base::failure(errno);
  return {};
}

std::int32_t UdpSocket::receive_into(DatagramBatch& batch, detail::backend::System& system,
                                     int fd) noexcept {
  const auto messages = batch.prepare_to_receive();
  constexpr int flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
  return detail::io::retry([&]() -> ssize_t {
    if (messages.count == 1) return system.recvmsg(fd, &messages.first->msg_hdr, flags);
    return system.recvmmsg(fd, messages.first, static_cast<unsigned>(messages.count), flags);
  });
}

UdpSocket::Receive::Receive(UdpSocket& socket, DatagramBatch& into) noexcept
    : detail::IoWait(socket, Events::read, detail::FirstCall::when_ready),
      into_(into),
      has_room_(socket.fits(into)),
      merges_(socket.gro_) {
  into.clear();
}

bool UdpSocket::Receive::await_ready() noexcept {
  if (!has_room_) outcome = -EINVAL;
  return !has_room_;
}

bool UdpSocket::Receive::step(detail::loop::Core& core) noexcept {
  return finish(receive_into(into_, core.backend().system(), fd()));
}

Result<std::size_t> UdpSocket::Receive::await_resume() noexcept {
  if (outcome < 0) return detail::base::failure(outcome);
  into_.received(static_cast<std::size_t>(outcome), merges_);
  return into_.size();
}

UdpSocket::Send::Send(UdpSocket& socket, DatagramBatch& from) noexcept
    : detail::IoWait(socket, Events::write, detail::FirstCall::within_budget),
      from_(from),
      may_segment_(socket.can_segment_) {
  prepare();
}

void UdpSocket::Send::prepare() noexcept {
  messages_ = from_.prepare_to_send(may_segment_, udp().peer_is_v4_);
}

std::int32_t UdpSocket::Send::call(detail::backend::System& system) noexcept {
  return detail::io::retry([&]() -> ssize_t {
    if (messages_.count == 1)
      return system.sendmsg(fd(), &messages_.first->msg_hdr, send_flags) < 0 ? -1 : 1;
    return system.sendmmsg(fd(), messages_.first, static_cast<unsigned>(messages_.count),
                           send_flags);
  });
}

bool UdpSocket::Send::step(detail::loop::Core& core) noexcept {
  do {
    if (!finish(call(core.backend().system()))) return false;
    if (outcome >= 0) {
      from_.sent(static_cast<std::size_t>(outcome));
      if (from_.empty()) return true;
    } else if (!retries_unsegmented()) {
      return true;
    }
    prepare();
  } while (may_continue(core));
  return false;
}

bool UdpSocket::Send::retries_unsegmented() noexcept {
  if (!messages_.with_segments || !is_segmentation_refusal(outcome)) return false;
  may_segment_ = false;
  if (outcome == -EIO) udp().can_segment_ = false;
  return true;
}

Result<> UdpSocket::Send::await_resume() const noexcept { return detail::base::result_of(outcome); }

UdpSocket::SendTo::SendTo(UdpSocket& socket, std::span<const std::byte> bytes, const Endpoint* to,
                          const DatagramOptions& options, std::size_t segment_bytes) noexcept
    : detail::IoWait(socket, Events::write, detail::FirstCall::within_budget),
      segment_bytes_(segment_bytes),
      may_segment_(socket.can_segment_),
      left_{.iov_base = const_cast<std::byte*>(bytes.data()),  // NOLINT: sendmsg(2) reads.
            .iov_len = bytes.size()} {
  Datagram::Piece piece;
  const auto set = piece.set_destination(to, options);
  if (!set || segment_bytes == 0) {
    outcome = set ? -EINVAL : -set.error().value();
    return;
  }
  is_done_ = segment_bytes != whole && bytes.empty();
  name_ = piece.name;
  name_size_ = piece.name_size();
  const std::size_t segments_bytes = std::min(segment_bytes, DatagramBatch::together_bytes_max);
  control_.set(piece.is_v4(socket.peer_is_v4_), piece.from, options.interface, options.ecn,
               static_cast<std::uint16_t>(segments_bytes));
  begin_message();
}

UdpSocket::SendTo::SendTo(SendTo&& other) noexcept
    : detail::IoWait(static_cast<detail::IoWait&&>(other)),
      name_(other.name_),
      name_size_(other.name_size_),
      segment_bytes_(other.segment_bytes_),
      may_segment_(other.may_segment_),
      is_done_(other.is_done_),
      left_(other.left_),
      control_(other.control_) {
  if (!await_ready()) begin_message();
}

void UdpSocket::SendTo::begin_message() noexcept {
  message_.msg_iov = &now_;
  message_.msg_iovlen = 1;
  message_.msg_namelen = name_size_;
  message_.msg_name = name_size_ != 0 ? &name_ : nullptr;
  prepare();
}

void UdpSocket::SendTo::prepare() noexcept {
  const std::size_t fit =
      std::min(DatagramBatch::together_bytes_max / segment_bytes_, DatagramBatch::segments_max);
  const std::size_t together = may_segment_ ? std::max<std::size_t>(fit, 1) : 1;
  now_.iov_base = left_.iov_base;
  now_.iov_len = std::min(left_.iov_len, segment_bytes_ * together);
  control_.put_into(message_, now_.iov_len > segment_bytes_);
}

bool UdpSocket::SendTo::step(detail::loop::Core& core) noexcept {
  detail::backend::System& system = core.backend().system();
  do {
    if (!finish(detail::io::retry([&] { return system.sendmsg(fd(), &message_, send_flags); })))
      return false;
    if (outcome >= 0) {
      left_.iov_base = static_cast<std::byte*>(left_.iov_base) + now_.iov_len;
      left_.iov_len -= now_.iov_len;
      if (left_.iov_len == 0) return true;
    } else if (!retries_unsegmented()) {
      return true;
    }
    prepare();
  } while (may_continue(core));
  return false;
}

bool UdpSocket::SendTo::retries_unsegmented() noexcept {
  if (now_.iov_len <= segment_bytes_ || !is_segmentation_refusal(outcome)) return false;
  may_segment_ = false;
  if (outcome == -EIO) udp().can_segment_ = false;
  return true;
}

Result<> UdpSocket::SendTo::await_resume() const noexcept {
  return detail::base::result_of(outcome);
}

template <class Sending>
Result<> UdpSocket::at_once(Sending&& sending) noexcept {
  // If the operation would have to wait, its destructor ends it.
  if (!sending.await_ready() && !sending.try_now()) return detail::base::failure(EAGAIN);
  return sending.await_resume();
}

Result<> UdpSocket::try_send(DatagramBatch& from) noexcept { return at_once(Send(*this, from)); }

Result<> UdpSocket::try_send_to(std::span<const std::byte> bytes, const Endpoint& to,
                                const DatagramOptions& options) noexcept {
  return at_once(SendTo(*this, bytes, &to, options, SendTo::whole));
}

Result<> UdpSocket::try_send(std::span<const std::byte> bytes,
                             const DatagramOptions& options) noexcept {
  return at_once(SendTo(*this, bytes, nullptr, options, SendTo::whole));
}

}  // namespace tambour
