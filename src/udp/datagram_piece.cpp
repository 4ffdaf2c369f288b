// Addresses and ancillary data of a datagram: cmsg(3), ip(7), ipv6(7).
#include "udp/datagram_piece.h"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/failure.h"
#include "udp/received_control.h"

namespace tambour {
namespace {

/// The type of the value of UDP_SEGMENT.
using SegmentSize = std::uint16_t;

}  // namespace

namespace detail::udp {

in6_addr mapped(const in_addr& address) noexcept {
  in6_addr six{};
  six.s6_addr[10] = six.s6_addr[11] = 0xff;
  std::memcpy(&six.s6_addr[12], &address, sizeof(address));
  return six;
}

in6_addr address_of(const Endpoint& endpoint) noexcept {
  if (endpoint.family() == AF_INET)
    return mapped(reinterpret_cast<const sockaddr_in*>(endpoint.data())->sin_addr);
  if (endpoint.family() == AF_INET6)
    return reinterpret_cast<const sockaddr_in6*>(endpoint.data())->sin6_addr;
  return {};
}

Endpoint ip_endpoint(const in6_addr& address, bool as_v4, unsigned interface) noexcept {
  if (as_v4) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, &address.s6_addr[12], sizeof(four.sin_addr));
    return Endpoint::from(reinterpret_cast<const sockaddr*>(&four), sizeof(four))
        .value_or(Endpoint());
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = address;
  if (IN6_IS_ADDR_LINKLOCAL(&address) || IN6_IS_ADDR_MC_LINKLOCAL(&address))
    six.sin6_scope_id = interface;
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&six), sizeof(six)).value_or(Endpoint());
}

}  // namespace detail::udp

template <class Value>
void detail::DatagramControl::put(int level, int type, const Value& value) noexcept {
  auto* const header = reinterpret_cast<cmsghdr*>(bytes_.data() + size_);
  // Clears the padding, which is passed to the kernel too.
  std::memset(header, 0, CMSG_SPACE(sizeof(value)));
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(value));
  std::memcpy(CMSG_DATA(header), &value, sizeof(value));
  size_ = static_cast<std::uint8_t>(size_ + CMSG_SPACE(sizeof(value)));
}

void detail::DatagramControl::set(bool is_v4, const in6_addr& from, unsigned interface, Ecn ecn,
                                  std::uint16_t segment) noexcept {
  size_ = 0;
  const bool has_from = !IN6_IS_ADDR_UNSPECIFIED(&from);
  if (has_from || interface != 0) {
    // The kernel silently ignores a source address of the other IP version. An interface index that
    // does not exist makes it fail instead.
    if (has_from && is_v4 != bool(IN6_IS_ADDR_V4MAPPED(&from))) interface = INT_MAX;
    if (is_v4) {
      in_pktinfo info{};
      info.ipi_ifindex = static_cast<int>(interface);
      std::memcpy(&info.ipi_spec_dst, &from.s6_addr[12], sizeof(info.ipi_spec_dst));
      put(IPPROTO_IP, IP_PKTINFO, info);
    } else {
      put(IPPROTO_IPV6, IPV6_PKTINFO, in6_pktinfo{.ipi6_addr = from, .ipi6_ifindex = interface});
    }
  }
  if (ecn != Ecn::none) {
    const int bits = static_cast<int>(ecn);
    if (is_v4) {
      put(IPPROTO_IP, IP_TOS, bits);
    } else {
      put(IPPROTO_IPV6, IPV6_TCLASS, bits);
    }
  }
  size_without_segment_ = size_;
  if (segment != 0) put(IPPROTO_UDP, UDP_SEGMENT, SegmentSize{segment});
}

void detail::DatagramControl::put_into(msghdr& message, bool with_segment) noexcept {
  message.msg_controllen = with_segment ? size_ : size_without_segment_;
  message.msg_control = message.msg_controllen != 0 ? bytes_.data() : nullptr;
}

Result<> Datagram::Piece::set_destination(const Endpoint* destination,
                                          const DatagramOptions& options) noexcept {
  if ((destination != nullptr && !destination->is_ip()) || (options.from && !options.from->is_ip()))
    return detail::base::failure(EAFNOSUPPORT);
  if (destination != nullptr) std::memcpy(&name, destination->data(), destination->size());
  if (options.from) from = detail::udp::address_of(*options.from);
  interface = options.interface;
  ecn = options.ecn;
  added = true;
  return {};
}

bool Datagram::Piece::has_same_destination(const Piece& other) const noexcept {
  return added && other.added && ecn == other.ecn && interface == other.interface &&
         std::memcmp(&name, &other.name, sizeof(name)) == 0 &&
         std::memcmp(&from, &other.from, sizeof(from)) == 0;
}

void Datagram::Piece::read_control(const msghdr& message, bool merges) noexcept {
  const detail::udp::ReceivedControl read = detail::udp::read_control(message, merges);
  segment = read.segment;
  has_to = read.has_to;
  ecn = read.ecn;
  from = read.from;
  to = read.to;
  interface = read.interface;
  control_truncated = read.truncated;
  truncated = (message.msg_flags & MSG_TRUNC) != 0 || read.boundaries_lost;
}

Endpoint Datagram::peer() const noexcept {
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&piece_->name), piece_->name_size())
      .value_or(Endpoint());
}

bool Datagram::is_truncated() const noexcept { return piece_->truncated; }

bool Datagram::control_truncated() const noexcept { return piece_->control_truncated; }

std::optional<Endpoint> Datagram::to() const noexcept {
  if (!piece_->has_to) return std::nullopt;
  return detail::udp::ip_endpoint(piece_->to, piece_->name.sin6_family == AF_INET,
                                  piece_->interface);
}

unsigned Datagram::interface() const noexcept { return piece_->interface; }

Ecn Datagram::ecn() const noexcept { return piece_->ecn; }

}  // namespace tambour
