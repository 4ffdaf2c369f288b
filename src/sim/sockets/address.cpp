// Addresses of simulated sockets, with the checks that Linux makes of sockaddr.
#include "sim/sockets/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tambour::sim::detail {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const std::uint8_t* ip) noexcept {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), ip);
}

void set_ip4(Address& address, const std::uint8_t* ip) noexcept {
  address.family = AF_INET;
  address.ip = {};
  std::copy_n(ip, 4, address.ip.begin());
}

int parse_unix(const sockaddr* from, socklen_t size, Address& to) {
  if (size > sizeof(sockaddr_un)) return -EINVAL;
  constexpr std::size_t header = offsetof(sockaddr_un, sun_path);
  const char* path = reinterpret_cast<const char*>(from) + header;
  to.path.assign(path, size - header);
  if (!to.path.empty() && to.path[0] != '\0') to.path.resize(std::strlen(to.path.c_str()));
  return 0;
}

}  // namespace

bool Address::loopback() const noexcept {
  if (family == AF_INET) return ip[0] == 127;
  return std::all_of(ip.begin(), ip.end() - 1, [](auto byte) { return byte == 0; }) && ip[15] == 1;
}

std::string Address::text() const {
  if (family == AF_UNIX) {
    if (path.empty()) return "unnamed";
    return path[0] == '\0' ? std::string("@").append(path, 1) : path;
  }
  std::array<char, INET6_ADDRSTRLEN> digits{};
  ::inet_ntop(family, ip.data(), digits.data(), digits.size());
  std::string text = digits.data();
  if (family == AF_INET6) text = std::string("[").append(text).append("]");
  return text.append(":").append(std::to_string(port));
}

int parse(const sockaddr* from, socklen_t size, int family, Address& to) {
  if (from == nullptr) return -EFAULT;
  if (size < sizeof(sa_family_t)) return -EINVAL;
  if (from->sa_family != family) return family == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
  to = {};
  to.family = family;
  if (family == AF_UNIX) return parse_unix(from, size, to);
  if (family == AF_INET) {
    sockaddr_in in;
    if (size < sizeof in) return -EINVAL;
    std::memcpy(&in, from, sizeof in);
    set_ip4(to, reinterpret_cast<const std::uint8_t*>(&in.sin_addr));
    to.port = ntohs(in.sin_port);
    return 0;
  }
  // RFC 2133 had no sin6_scope_id, and Linux still accepts addresses without it.
  constexpr socklen_t shortest = offsetof(sockaddr_in6, sin6_scope_id);
  sockaddr_in6 in6{};
  if (size < shortest) return -EINVAL;
  std::memcpy(&in6, from, std::min<std::size_t>(size, sizeof in6));
  const auto* ip = reinterpret_cast<const std::uint8_t*>(&in6.sin6_addr);
  if (is_mapped(ip)) {
    set_ip4(to, ip + mapped_prefix.size());
  } else {
    std::copy_n(ip, to.ip.size(), to.ip.begin());
  }
  to.port = ntohs(in6.sin6_port);
  return 0;
}

void store(const Address& from, int family, sockaddr* to, socklen_t* size) noexcept {
  if (to == nullptr || size == nullptr) return;
  sockaddr_storage storage{};
  storage.ss_family = sa_family_t(family);
  socklen_t full = sizeof(sa_family_t);
  if (family == AF_UNIX) {
    auto* un = reinterpret_cast<sockaddr_un*>(&storage);
    std::copy(from.path.begin(), from.path.end(), un->sun_path);
    full += from.path.size();
    // The kernel counts the terminating null byte of a path if it fits.
    if (!from.path.empty() && from.path[0] != '\0' && full < sizeof *un) ++full;
  } else if (family == AF_INET) {
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    in->sin_port = htons(from.port);
    std::memcpy(&in->sin_addr, from.ip.data(), sizeof in->sin_addr);
    full = sizeof *in;
  } else {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    in6->sin6_port = htons(from.port);
    auto* ip = reinterpret_cast<std::uint8_t*>(&in6->sin6_addr);
    if (from.family == AF_INET) {
      std::copy(mapped_prefix.begin(), mapped_prefix.end(), ip);
      std::copy_n(from.ip.begin(), 4, ip + mapped_prefix.size());
    } else {
      std::copy(from.ip.begin(), from.ip.end(), ip);
    }
    full = sizeof *in6;
  }
  std::memcpy(to, &storage, std::min(*size, full));
  *size = full;
}

Address host_address(int family, unsigned number) noexcept {
  Address address;
  address.family = family;
  auto* last = address.ip.end();
  if (family == AF_INET) {
    address.ip[0] = 10;
    last = address.ip.begin() + 4;
  } else {
    address.ip[0] = 0xfd;
  }
  for (int shift = 0; shift < 24; shift += 8) *--last = std::uint8_t(number >> shift);
  return address;
}

Address loopback_address(int family) noexcept {
  Address loopback;
  loopback.family = family;
  if (family == AF_INET) {
    loopback.ip[0] = 127;
    loopback.ip[3] = 1;
  } else {
    loopback.ip[15] = 1;
  }
  return loopback;
}

unsigned host_number(const Address& address) noexcept {
  if (address.family != AF_INET && address.family != AF_INET6) return 0;
  const std::size_t size = address.family == AF_INET ? 4 : 16;
  const unsigned number = unsigned{address.ip[size - 3]} << 16 |
                          unsigned{address.ip[size - 2]} << 8 | address.ip[size - 1];
  return address.ip == host_address(address.family, number).ip ? number : 0;
}

}  // namespace tambour::sim::detail
