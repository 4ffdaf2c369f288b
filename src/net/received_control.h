// Ancillary data that arrived with a datagram: cmsg(3), ip(7), ipv6(7), udp(7).
//
// The kernel shortens the last control message if the buffer is too small, and drops the messages
// after it (MSG_CTRUNC). A value is read only if its control message holds all of it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include <tambour/datagrams.h>

namespace tambour::net {

/// Bytes of the buffer for control messages of one received datagram. This holds everything that
/// UdpOptions enables together with every option of fixed size that a program can enable itself:
/// timestamps, SO_RXQ_OVFL, SO_RCVMARK, IP_RECVTTL, IP_RECVOPTS, IP_RECVORIGDSTADDR, and so on.
/// IPv6 extension headers (IPV6_RECVHOPOPTS, up to 2 KiB each) may not fit.
inline constexpr std::size_t received_control_bytes = 640;

/// The values that a DatagramBatch keeps. A value that did not arrive, or not as a whole, is zero.
struct ReceivedControl {
  bool has_to = false;
  bool truncated = false;  ///< MSG_CTRUNC: values may be missing.
  bool boundaries_lost = false;
  Ecn ecn = Ecn::none;        ///< IP_TOS, IPV6_TCLASS
  std::uint16_t segment = 0;  ///< UDP_GRO: the size of the datagrams that arrived as one message.
  unsigned interface = 0;
  in6_addr to{};    ///< IP_PKTINFO, IPV6_PKTINFO: the destination address.
  in6_addr from{};  ///< The address to reply from.
};

/// `merges`: the socket has UDP_GRO. Then `boundaries_lost` is set if its value may be among those
/// that are missing: the bytes may be several datagrams of unknown size.
[[nodiscard]] ReceivedControl read_control(const msghdr& message, bool merges) noexcept;

}  // namespace tambour::net
