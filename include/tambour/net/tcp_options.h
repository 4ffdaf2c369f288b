// Detection of unresponsive TCP peers: keepalive and TCP_USER_TIMEOUT (tcp(7)).
#pragma once

#include <chrono>

#include <tambour/base/clock.h>

#pragma GCC visibility push(default)

namespace tambour {

/// How soon the kernel gives up a connection whose peer does not answer. If the peer's machine lost
/// power, or the network drops all packets, the peer never answers. If the kernel gives up, reads
/// and writes then fail with ETIMEDOUT. Durations are rounded up to the kernel's units. Zero keeps
/// the system's default.
struct TcpOptions {
  /// The connection's idle time before keepalive probes are sent (SO_KEEPALIVE, TCP_KEEPIDLE, in
  /// seconds). Zero: no probes, and the next two members are ignored.
  Duration keepalive_idle{};
  Duration keepalive_interval = std::chrono::seconds(10);  ///< TCP_KEEPINTVL, in seconds.
  /// The number of unanswered probes after which the connection fails (TCP_KEEPCNT).
  int keepalive_count = 6;
  /// How long sent data may stay unacknowledged before the connection fails (TCP_USER_TIMEOUT, in
  /// milliseconds). If set, it also limits keepalive probing.
  Duration user_timeout{};
};

}  // namespace tambour

#pragma GCC visibility pop
