// The implementation of DatagramBatch: what the kernel receives or sends as one message.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <tambour/udp/datagrams.h>

namespace tambour {

/// One datagram, or a run of datagrams of `segment` bytes each, of which the last may be shorter.
/// IPv4 addresses are stored as IPv4-mapped IPv6 addresses.
struct Datagram::Piece {
  sockaddr_in6 name{};  ///< Or a sockaddr_in. AF_UNSPEC: the socket's peer.
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::uint16_t segment = 0;  ///< 0: one datagram of any size.
  bool added = false;         ///< Added by the program, not received.
  bool truncated = false;
  bool control_truncated = false;
  bool has_to = false;
  Ecn ecn = Ecn::none;  ///< Of the received datagram, or for the datagram to send.
  in6_addr to{};
  in6_addr from{};  ///< The source address to send from; all zero: the kernel chooses it.
  unsigned interface = 0;
  detail::DatagramControl control;

  [[nodiscard]] socklen_t name_size() const noexcept {
    if (name.sin6_family == AF_UNSPEC) return 0;
    return name.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  }
  /// Returns the size of the first datagram.
  [[nodiscard]] std::size_t first_size() const noexcept {
    return segment != 0 && segment < size ? segment : size;
  }
  [[nodiscard]] std::size_t datagrams() const noexcept {
    return segment != 0 && segment < size ? (size + segment - 1) / segment : 1;
  }
  [[nodiscard]] bool is_v4(bool if_unnamed) const noexcept {
    if (name.sin6_family == AF_UNSPEC) return if_unnamed;
    return name.sin6_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&name.sin6_addr);
  }

  /// Fails with EAFNOSUPPORT if an address is not an IP address.
  Result<> set_destination(const Endpoint* destination, const DatagramOptions& options) noexcept;
  /// Reads the ancillary data and the flags of a received message. `merges`: the socket has
  /// UDP_GRO.
  void read_control(const msghdr& message, bool merges) noexcept;
  [[nodiscard]] bool has_same_destination(const Piece& other) const noexcept;
};

namespace detail::udp {

in6_addr mapped(const in_addr& address) noexcept;
/// Returns all zeros if the endpoint is not an IP endpoint.
in6_addr address_of(const Endpoint& endpoint) noexcept;
Endpoint ip_endpoint(const in6_addr& address, bool as_v4, unsigned interface) noexcept;

}  // namespace detail::udp
}  // namespace tambour
