// Options of sockets that concern addresses and interfaces: socket(7), ip(7), ipv6(7).
#pragma once

#include <string>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Options of the socket that are set before bind(2) and connect(2). Ignored for Unix endpoints,
/// and on simulated hosts.
struct BindOptions {
  /// Sends and receives only through this network interface, for example "eth0", or through the
  /// interfaces of this VRF: SO_BINDTODEVICE. Fails with ENODEV if the interface does not exist.
  /// Before Linux 5.7 this needs the capability CAP_NET_RAW (EPERM).
  std::string interface{};
  /// Allows binding to addresses that this machine does not have, and makes a listener accept
  /// connections to any address that the firewall redirects to it (TPROXY): IP_TRANSPARENT,
  /// IPV6_TRANSPARENT. The local_endpoint() of an accepted stream is the address to which the
  /// client connected. Needs CAP_NET_ADMIN or CAP_NET_RAW (EPERM).
  bool transparent = false;
  /// Allows binding to addresses that this machine does not have, or does not have yet:
  /// IP_FREEBIND, IPV6_FREEBIND. Needs no capability.
  bool freebind = false;

  // Not an aggregate: options that contain it may be written inside a co_await expression.
  BindOptions() noexcept {}  // NOLINT(modernize-use-equals-default)
};

}  // namespace tambour

#pragma GCC visibility pop
