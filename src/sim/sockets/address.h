// Socket addresses, and their conversion from and to the form that system calls use.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include <tambour/detail/namespaces.h>

namespace tambour::sim::detail {

struct Address {
  int family = AF_UNSPEC;
  std::array<std::uint8_t, 16> ip{};  ///< IPv4 uses the first four bytes.
  std::uint16_t port = 0;
  std::string path;  ///< AF_UNIX, as in sun_path: an abstract name begins with a null byte.

  bool operator==(const Address&) const = default;

  [[nodiscard]] bool any() const noexcept { return ip == std::array<std::uint8_t, 16>{}; }
  [[nodiscard]] bool loopback() const noexcept;
  /// "10.0.0.1:80", "[fd00::1]:80", a path, or "@name".
  [[nodiscard]] std::string text() const;
};

/// Returns 0 or a negated errno value. IPv4-mapped IPv6 addresses are converted to IPv4.
int parse(const sockaddr* from, socklen_t size, int family, Address& to);

/// Stores an address as getsockname(2) does: truncated to `*size`, which is set to the full size.
/// Does nothing if a pointer is null. `family` is that of the socket.
void store(const Address& from, int family, sockaddr* to, socklen_t* size) noexcept;

/// The addresses of the n-th host, counting from 1.
Address host_address(int family, unsigned number) noexcept;

/// 127.0.0.1 or ::1.
Address loopback_address(int family) noexcept;

/// Returns the number of the host that has this address, or 0.
unsigned host_number(const Address& address) noexcept;

}  // namespace tambour::sim::detail
