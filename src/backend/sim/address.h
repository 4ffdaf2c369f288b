// Addresses of sockets, out of the form that system calls take and back into it.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

namespace tambour::backend::sim {

struct Address {
  int family = AF_UNSPEC;
  std::array<std::uint8_t, 16> ip{};  ///< IPv4: the first four.
  std::uint16_t port = 0;
  std::string path;  ///< AF_UNIX, as in sun_path: an abstract name begins with a zero byte.

  bool operator==(const Address&) const = default;

  [[nodiscard]] bool any() const noexcept { return ip == std::array<std::uint8_t, 16>{}; }
  [[nodiscard]] bool loopback() const noexcept;
  /// "10.0.0.1:80", "[fd00::1]:80", a path, or "@name".
  [[nodiscard]] std::string text() const;
};

/// 0, or an errno value negated. IPv4 addresses that are mapped into IPv6 become what they are.
int parse(const sockaddr* from, socklen_t size, int family, Address& to);

/// As getsockname(2) stores addresses: truncated to `*size`, which becomes the full size. Null
/// pointers are left alone. `family` is that of the socket.
void store(const Address& from, int family, sockaddr* to, socklen_t* size) noexcept;

/// The addresses of the n-th host, counted from 1.
Address host_address(int family, unsigned number) noexcept;

/// 127.0.0.1 or ::1.
Address loopback_address(int family) noexcept;

/// The number of the host that has this address, or 0.
unsigned host_number(const Address& address) noexcept;

}  // namespace tambour::backend::sim
