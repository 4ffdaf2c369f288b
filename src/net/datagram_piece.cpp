// What goes with the bytes of a datagram: addresses, and ancillary data (cmsg(3), ip(7), ipv6(7)).
#include "net/datagram_piece.h"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace tambour {
namespace {

/// Of what is cut by the kernel, or was put together by it.
using SegmentToCut = std::uint16_t;
using SegmentThatCame = int;

template <class Value>
Value value_of(const cmsghdr* header) noexcept {
  Value value;
  std::memcpy(&value, CMSG_DATA(header), sizeof(value));
  return value;
}

constexpr int ecn_mask = 3;

bool is_multicast(const in6_addr& address) noexcept {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return (address.s6_addr[12] & 0xf0) == 0xe0;
  return IN6_IS_ADDR_MULTICAST(&address);
}

}  // namespace

namespace net {

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

}  // namespace net

template <class Value>
void DatagramControl::put(int level, int type, const Value& value) noexcept {
  auto* const header = reinterpret_cast<cmsghdr*>(bytes_.data() + size_);
  // What fills the gaps is sent too.
  std::memset(header, 0, CMSG_SPACE(sizeof(value)));
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(value));
  std::memcpy(CMSG_DATA(header), &value, sizeof(value));
  size_ = static_cast<std::uint8_t>(size_ + CMSG_SPACE(sizeof(value)));
}

void DatagramControl::set(bool is_v4, const in6_addr& from, unsigned interface, Ecn ecn,
                          std::uint16_t segment) noexcept {
  size_ = 0;
  const bool has_from = !IN6_IS_ADDR_UNSPECIFIED(&from);
  if (has_from || interface != 0) {
    // A source of the other version, which the kernel would pass over in silence: there is no such
    // interface, and it says so.
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
  if (segment != 0) put(IPPROTO_UDP, UDP_SEGMENT, SegmentToCut{segment});
}

void DatagramControl::put_into(msghdr& message, bool with_segment) noexcept {
  message.msg_controllen = with_segment ? size_ : size_without_segment_;
  message.msg_control = message.msg_controllen != 0 ? bytes_.data() : nullptr;
}

void DatagramControl::make_room_in(msghdr& message) noexcept {
  message.msg_control = bytes_.data();
  message.msg_controllen = bytes_.size();
}

Result<> Datagram::Piece::set_destination(const Endpoint* destination,
                                          const DatagramOptions& how) noexcept {
  if ((destination != nullptr && !destination->is_ip()) || (how.from && !how.from->is_ip()))
    return std::unexpected(system_error(EAFNOSUPPORT));
  if (destination != nullptr) std::memcpy(&name, destination->data(), destination->size());
  if (how.from) from = net::address_of(*how.from);
  interface = how.interface;
  ecn = how.ecn;
  added = true;
  return {};
}

bool Datagram::Piece::goes_as(const Piece& other) const noexcept {
  return added && other.added && ecn == other.ecn && interface == other.interface &&
         std::memcmp(&name, &other.name, sizeof(name)) == 0 &&
         std::memcmp(&from, &other.from, sizeof(from)) == 0;
}

void Datagram::Piece::read_control(const msghdr& message) noexcept {
  segment = 0;
  has_to = false;
  ecn = Ecn::none;
  from = {};
  interface = 0;
  bool by_v4 = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(const_cast<msghdr*>(&message), header)) {  // NOLINT: it reads.
    const int type = header->cmsg_type;
    if (header->cmsg_level == IPPROTO_IP && type == IP_PKTINFO) {
      const auto info = value_of<in_pktinfo>(header);
      by_v4 = has_to = true;
      to = net::mapped(info.ipi_addr);
      from = net::mapped(info.ipi_spec_dst);
      interface = static_cast<unsigned>(info.ipi_ifindex);
    } else if (header->cmsg_level == IPPROTO_IP && type == IP_TOS) {
      ecn = Ecn(value_of<std::uint8_t>(header) & ecn_mask);
    } else if (header->cmsg_level == IPPROTO_IPV6 && type == IPV6_PKTINFO && !by_v4) {
      const auto info = value_of<in6_pktinfo>(header);
      has_to = true;
      to = info.ipi6_addr;
      // A group sends nothing.
      from = is_multicast(to) ? in6_addr{} : to;
      interface = info.ipi6_ifindex;
    } else if (header->cmsg_level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
      ecn = Ecn(value_of<int>(header) & ecn_mask);
    } else if (header->cmsg_level == IPPROTO_UDP && type == UDP_GRO) {
      segment = static_cast<std::uint16_t>(value_of<SegmentThatCame>(header));
    }
  }
}

Endpoint Datagram::peer() const noexcept {
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&piece_->name), piece_->name_size())
      .value_or(Endpoint());
}

bool Datagram::truncated() const noexcept { return piece_->truncated; }

std::optional<Endpoint> Datagram::to() const noexcept {
  if (!piece_->has_to) return std::nullopt;
  return net::ip_endpoint(piece_->to, piece_->name.sin6_family == AF_INET, piece_->interface);
}

unsigned Datagram::interface() const noexcept { return piece_->interface; }

Ecn Datagram::ecn() const noexcept { return piece_->ecn; }

}  // namespace tambour
