// How long TCP waits for a peer that does not answer: keepalive and TCP_USER_TIMEOUT (tcp(7)).
#pragma once

#include <chrono>

#include <tambour/clock.h>

namespace tambour {

/// A peer whose machine has lost its power, or whose packets are dropped on the way, never answers.
/// These options make the kernel give up; reading and writing then fail with ETIMEDOUT. Durations
/// are rounded up to the kernel's units, and zero leaves the system's default as it is.
struct TcpOptions {
  /// Keepalive probes are sent after the connection was idle for so long (SO_KEEPALIVE,
  /// TCP_KEEPIDLE, in seconds). Zero: no probes, and the next two do not count.
  Duration keepalive_idle{};
  Duration keepalive_interval = std::chrono::seconds(10);  ///< TCP_KEEPINTVL, in seconds.
  int keepalive_count = 6;  ///< The connection fails after so many probes without an answer.
  /// The connection fails if sent bytes are not acknowledged for so long (TCP_USER_TIMEOUT, in
  /// milliseconds). Where it is set, it also ends keepalive probing.
  Duration user_timeout{};
};

}  // namespace tambour
