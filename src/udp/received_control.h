// Parses the ancillary data of a received datagram: cmsg(3), ip(7), ipv6(7), udp(7).
//
// If the buffer is too small, the kernel truncates the last control message and drops the messages
// after it (MSG_CTRUNC). A value is read only if its control message contains all of it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include <tambour/udp/datagrams.h>

namespace tambour::detail::udp {

/// Size, in bytes, of the control buffer of one received datagram. It is large enough for
/// everything that UdpOptions enables together with every option of fixed size that a program can
/// enable itself: timestamps, SO_RXQ_OVFL, SO_RCVMARK, IP_RECVTTL, IP_RECVOPTS, IP_RECVORIGDSTADDR,
/// and so on. IPv6 extension headers (IPV6_RECVHOPOPTS, up to 2 KiB each) may not fit.
inline constexpr std::size_t received_control_bytes = 640;

/// The values that a DatagramBatch keeps. A value that did not arrive, or arrived truncated, is
/// zero.
struct ReceivedControl {
  bool has_to = false;
  bool truncated = false;  ///< MSG_CTRUNC: values may be missing.
  bool boundaries_lost = false;
  Ecn ecn = Ecn::none;        ///< IP_TOS, IPV6_TCLASS
  std::uint16_t segment = 0;  ///< UDP_GRO: the size of each datagram in a merged message.
  unsigned interface = 0;
  in6_addr to{};    ///< IP_PKTINFO, IPV6_PKTINFO: the destination address.
  in6_addr from{};  ///< The address to reply from.
};

/// `merges`: the socket has UDP_GRO. In that case `boundaries_lost` is set if the UDP_GRO value may
/// be missing: the bytes may be several datagrams of unknown size.
[[nodiscard]] ReceivedControl read_control(const msghdr& message, bool merges) noexcept;

}  // namespace tambour::detail::udp
