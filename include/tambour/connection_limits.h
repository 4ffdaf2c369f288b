// Limits on the memory and time that a peer can make a Connection use.
//
// The limits are part of ConnectionCallbacks and are shared by all connections of a server. A
// connection has a timer only while one of its limits needs one. docs/limits.md lists what happens
// at each limit.
#pragma once

#include <chrono>
#include <cstddef>

#include <tambour/clock.h>

namespace tambour {

/// Sizes are in bytes. A duration of zero disables a time limit.
struct ConnectionLimits {
  /// Reading stops when unsent() reaches ConnectionCallbacks::high_water_bytes, and resumes when
  /// unsent() has fallen to this value.
  std::size_t low_water_bytes = std::size_t{256} * 1024;
  /// If a send() leaves more than this unsent, the connection is reset with ENOBUFS.
  std::size_t unsent_max = std::size_t{64} * 1024 * 1024;
  /// If on_message leaves more than this in its buffer without pausing reading, the connection is
  /// closed with EMSGSIZE. The default fits the longest message that LengthOptions allows.
  std::size_t unread_max = std::size_t{17} * 1024 * 1024;

  /// The longest time without progress in either direction: no byte was received and the kernel
  /// accepted none.
  Duration idle_timeout{};
  /// The longest time without a received byte while the connection is reading.
  Duration read_timeout{};
  /// The longest time for which the kernel accepts none of the unsent bytes.
  Duration write_timeout = std::chrono::seconds(60);
  /// The time limit for the rest of a message. It starts when on_message leaves bytes in its
  /// buffer, and restarts when on_message consumes some. A peer that sends a message byte by byte
  /// never exceeds the timeouts above, but exceeds this one.
  Duration message_timeout{};
  /// If not zero, bytes per second: each received byte of an incomplete message extends
  /// `message_timeout` by 1/message_rate_min seconds, so that long messages may take longer.
  std::size_t message_rate_min = 0;
  /// After close_after_write(): the longest time for which the peer may accept none of the
  /// remaining bytes and, once they are sent, the longest time until it closes its side. Then the
  /// connection is reset.
  Duration linger = std::chrono::seconds(10);
};

}  // namespace tambour
