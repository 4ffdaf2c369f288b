// Multicast groups with the socket options of RFC 3678, which are the same for IPv4 and IPv6.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <tambour/udp/socket.h>

#include "backend/system.h"
#include "base/failure.h"

namespace tambour {
namespace {

int level_of(const Endpoint& group) noexcept {
  return group.family() == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
}

template <class Value>
Result<> set(detail::backend::System& system, int fd, int level, int option,
             const Value& value) noexcept {
  if (system.setsockopt(fd, level, option, &value, sizeof(value)) != 0)
    return detail::base::failure(errno);
  return {};
}

}  // namespace

Result<> UdpSocket::change_group(int option, const Endpoint& group, unsigned interface) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  if (!group.is_ip()) return detail::base::failure(EAFNOSUPPORT);
  group_req request{};
  request.gr_interface = interface;
  std::memcpy(&request.gr_group, group.data(), group.size());
  return set(system(), fd(), level_of(group), option, request);
}

Result<> UdpSocket::change_source(int option, const Endpoint& group, const Endpoint& source,
                                  unsigned interface) noexcept {
  if (!is_open()) return detail::base::failure(EBADF);
  if (!group.is_ip() || !source.is_ip()) return detail::base::failure(EAFNOSUPPORT);
  group_source_req request{};
  request.gsr_interface = interface;
  std::memcpy(&request.gsr_group, group.data(), group.size());
  std::memcpy(&request.gsr_source, source.data(), source.size());
  return set(system(), fd(), level_of(group), option, request);
}

Result<> UdpSocket::join(const Endpoint& group, unsigned interface) noexcept {
  return change_group(MCAST_JOIN_GROUP, group, interface);
}

Result<> UdpSocket::leave(const Endpoint& group, unsigned interface) noexcept {
  return change_group(MCAST_LEAVE_GROUP, group, interface);
}

Result<> UdpSocket::join_source(const Endpoint& group, const Endpoint& source,
                                unsigned interface) noexcept {
  return change_source(MCAST_JOIN_SOURCE_GROUP, group, source, interface);
}

Result<> UdpSocket::leave_source(const Endpoint& group, const Endpoint& source,
                                 unsigned interface) noexcept {
  return change_source(MCAST_LEAVE_SOURCE_GROUP, group, source, interface);
}

Result<> UdpSocket::set_multicast_loop(bool loop) noexcept {
  return set_ip_option(IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, loop ? 1 : 0);
}

Result<> UdpSocket::set_multicast_hops(int hops) noexcept {
  if (hops < 0) return detail::base::failure(EINVAL);  // -1 would mean the default.
  return set_ip_option(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, hops);
}

Result<> UdpSocket::set_multicast_interface(unsigned interface) noexcept {
  if (!is_v4()) return set_option(IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface));
  if (!is_open()) return detail::base::failure(EBADF);
  ip_mreqn request{};
  request.imr_ifindex = static_cast<int>(interface);
  return set(system(), fd(), IPPROTO_IP, IP_MULTICAST_IF, request);
}

}  // namespace tambour
