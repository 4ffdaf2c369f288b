// What a peer can make a Connection hold, and for how long.
//
// The limits stand in ConnectionCallbacks and are shared by all connections of a server; a
// connection has a timer only while one of its limits needs one. docs/limits.md lists what happens
// at each limit.
#pragma once

#include <chrono>
#include <cstddef>

#include <tambour/clock.h>

namespace tambour {

/// Sizes are in bytes. A duration of zero turns a time limit off.
struct ConnectionLimits {
  /// Reading stops when unsent() reaches ConnectionCallbacks::high_water_bytes, and continues when
  /// unsent() has fallen to this.
  std::size_t low_water_bytes = std::size_t{256} * 1024;
  /// If a send() leaves more than this unsent, the connection is reset with ENOBUFS.
  std::size_t unsent_max = std::size_t{64} * 1024 * 1024;
  /// If on_message leaves more than this in its buffer without pausing reading, the connection is
  /// closed with EMSGSIZE. The default holds the longest message that LengthOptions allows.
  std::size_t unread_max = std::size_t{17} * 1024 * 1024;

  /// Neither direction made progress: no byte was received and the kernel took none.
  Duration idle_timeout{};
  /// No byte was received while the connection was reading.
  Duration read_timeout{};
  /// Bytes wait to be sent, and the kernel took none of them.
  Duration write_timeout = std::chrono::seconds(60);
  /// The time for the rest of a message: it starts when on_message leaves bytes in its buffer, and
  /// starts again when on_message consumes some. A peer that sends a message byte by byte passes
  /// the timeouts above, but not this one.
  Duration message_timeout{};
  /// If not zero, bytes per second: each received byte of an incomplete message extends
  /// `message_timeout` by 1/message_rate_min seconds, so that long messages may take longer.
  std::size_t message_rate_min = 0;
  /// After close_after_write(): how long the peer may accept none of the bytes that are left, and,
  /// once they are sent, how long it may take to close its side. Then the connection is reset.
  Duration linger = std::chrono::seconds(10);
};

}  // namespace tambour
