// An IP address of a host, without a port.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tambour/endpoint.h>

namespace tambour::dns {

struct Address {
  bool is_v6 = false;
  /// An IPv4 address in the first four.
  std::array<std::uint8_t, 16> bytes{};
  std::uint32_t zone = 0;  ///< The interface of a link-local address.

  bool operator==(const Address&) const = default;

  [[nodiscard]] std::size_t size() const noexcept { return is_v6 ? 16 : 4; }

  /// IPv4 addresses as ::ffff:a.b.c.d.
  [[nodiscard]] std::array<std::uint8_t, 16> mapped() const noexcept {
    if (is_v6) return bytes;
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, bytes[0], bytes[1], bytes[2], bytes[3]};
  }

  static Address of(const Endpoint& endpoint) noexcept {
    Address address;
    address.is_v6 = endpoint.family() == AF_INET6;
    if (address.is_v6) {
      const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(endpoint.data());
      std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
      address.zone = v6.sin6_scope_id;
    } else {
      const auto& v4 = *reinterpret_cast<const sockaddr_in*>(endpoint.data());
      std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
    }
    return address;
  }

  [[nodiscard]] Endpoint endpoint(std::uint16_t port) const noexcept {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    if (is_v6) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      v6.sin6_scope_id = zone;
      std::memcpy(&v6.sin6_addr, bytes.data(), 16);
      return *Endpoint::from(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    }
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, bytes.data(), 4);
    return *Endpoint::from(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
};

}  // namespace tambour::dns
