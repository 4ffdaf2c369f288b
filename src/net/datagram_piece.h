// The inside of a DatagramBatch: what the kernel gives or takes as one message.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <tambour/datagrams.h>

namespace tambour {

/// One datagram, or a run of them of `segment` bytes each, but for the last, which may be shorter.
/// Addresses of IPv4 are kept as IPv6 maps them.
struct Datagram::Piece {
  sockaddr_in6 name{};  ///< Or a sockaddr_in. AF_UNSPEC: the socket's peer.
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::uint16_t segment = 0;  ///< 0: one datagram of whatever size.
  bool added = false;         ///< By the program, and not received.
  bool truncated = false;
  bool control_truncated = false;
  bool has_to = false;
  Ecn ecn = Ecn::none;  ///< As it came, or as it is to go.
  in6_addr to{};
  in6_addr from{};  ///< To send from; all zero: not said.
  unsigned interface = 0;
  DatagramControl control;

  [[nodiscard]] socklen_t name_size() const noexcept {
    if (name.sin6_family == AF_UNSPEC) return 0;
    return name.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  }
  /// Of the first datagram of it.
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

  /// EAFNOSUPPORT where an address is not one of IP.
  Result<> set_destination(const Endpoint* destination, const DatagramOptions& how) noexcept;
  /// Takes over the ancillary data and the flags of a received message. `merges`: the socket has
  /// UDP_GRO.
  void read_control(const msghdr& message, bool merges) noexcept;
  [[nodiscard]] bool goes_as(const Piece& other) const noexcept;
};

namespace net {

in6_addr mapped(const in_addr& address) noexcept;
/// All zero where it is not an address of IP.
in6_addr address_of(const Endpoint& endpoint) noexcept;
Endpoint ip_endpoint(const in6_addr& address, bool as_v4, unsigned interface) noexcept;

}  // namespace net
}  // namespace tambour
