// Takes the addresses, the hop limit, the congestion mark and the segment size out of control
// messages.
#include "udp/received_control.h"

#include <netinet/udp.h>

#include <cstring>
#include <optional>

#include "udp/datagram_piece.h"

namespace tambour::detail::udp {
namespace {

constexpr int ecn_mask = 3;

/// Returns nothing if the control message is shorter than the value.
template <class Value>
std::optional<Value> value_of(const cmsghdr& header) noexcept {
  if (header.cmsg_len < CMSG_LEN(sizeof(Value))) return std::nullopt;
  Value value;
  std::memcpy(&value, CMSG_DATA(&header), sizeof(value));
  return value;
}

bool is_multicast(const in6_addr& address) noexcept {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return (address.s6_addr[12] & 0xf0) == 0xe0;
  return IN6_IS_ADDR_MULTICAST(&address);
}

void read_v4(const cmsghdr& header, ReceivedControl& into) noexcept {
  if (header.cmsg_type == IP_PKTINFO) {
    const auto info = value_of<in_pktinfo>(header);
    if (!info) return;
    into.has_to = true;
    into.to = mapped(info->ipi_addr);
    into.from = mapped(info->ipi_spec_dst);
    into.interface = static_cast<unsigned>(info->ipi_ifindex);
  } else if (header.cmsg_type == IP_TOS) {
    if (const auto tos = value_of<std::uint8_t>(header)) into.ecn = Ecn(*tos & ecn_mask);
  }
}

void read_v6(const cmsghdr& header, ReceivedControl& into) noexcept {
  if (header.cmsg_type == IPV6_PKTINFO) {
    // For an IPv4 datagram, an IPv6 socket reports both messages, in either order. IP_PKTINFO takes
    // precedence because it also contains the address to reply from.
    const auto info = value_of<in6_pktinfo>(header);
    if (!info || into.has_to) return;
    into.has_to = true;
    into.to = info->ipi6_addr;
    // A multicast address cannot be a source address.
    into.from = is_multicast(into.to) ? in6_addr{} : into.to;
    into.interface = info->ipi6_ifindex;
  } else if (header.cmsg_type == IPV6_TCLASS) {
    if (const auto traffic_class = value_of<int>(header)) into.ecn = Ecn(*traffic_class & ecn_mask);
  }
}

}  // namespace

ReceivedControl read_control(const msghdr& message, bool merges) noexcept {
  ReceivedControl read;
  read.truncated = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(const_cast<msghdr*>(&message), header)) {  // NOLINT: reads only.
    if (header->cmsg_level == IPPROTO_IP) {
      read_v4(*header, read);
    } else if (header->cmsg_level == IPPROTO_IPV6) {
      read_v6(*header, read);
    } else if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
      if (const auto size = value_of<int>(*header))
        read.segment = static_cast<std::uint16_t>(*size);
    }
  }
  read.boundaries_lost = merges && read.truncated && read.segment == 0;
  return read;
}

}  // namespace tambour::detail::udp
