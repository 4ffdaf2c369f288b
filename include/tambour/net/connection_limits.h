// Limits on the memory and time that a peer can make a Connection use.
//
// The limits are part of ConnectionCallbacks and are shared by all connections of a server. A
// connection has a timer only while one of its limits needs one. docs/limits.md lists what happens
// at each limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <tambour/base/clock.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Which connections stop reading at the high-water mark.
///
/// Reading less than the peer sends is safe only if the peer goes on reading. Two ends that both
/// stop reading because the other one does not read wait for each other until `write_timeout`. Use
/// backpressure at one end only. Do not use it with a peer that, before it reads, sends more than
/// the mark plus the kernel's buffers.
enum class Backpressure : std::uint8_t {
  accepted,  ///< Connections that a server accepted, but not those of Connection::start().
  all,
  none,
};

/// The sizes of the buffers of a Connection, in bytes, and its time limits. A duration of zero
/// disables a time limit.
struct ConnectionLimits {
  /// Whether reading stops when unsent() reaches ConnectionCallbacks::high_water_bytes.
  Backpressure backpressure = Backpressure::accepted;
  /// If reading has stopped at the high-water mark, it resumes when unsent() has fallen to this
  /// value.
  std::size_t low_water_bytes = std::size_t{256} * 1024;
  /// If bytes are unsent and a send() would make them more than this, the connection is reset with
  /// ENOBUFS. One send() of any size is accepted if no bytes are unsent.
  std::size_t unsent_bytes_max = std::size_t{64} * 1024 * 1024;
  /// If on_message leaves more than this in its buffer without pausing reading, the connection is
  /// closed with EMSGSIZE. The default fits the longest message that LengthOptions allows.
  std::size_t unread_bytes_max = std::size_t{17} * 1024 * 1024;

  // Sending makes progress when the kernel accepts bytes or the peer acknowledges some. The
  // connection asks for acknowledgements only when a limit expires, so a peer that has acknowledged
  // bytes and then stops is closed after at most twice the limit.

  /// The longest time without progress in either direction: no byte was received and sending made
  /// no progress.
  Duration idle_timeout{};
  /// The longest time without a received byte while the connection is reading.
  Duration read_timeout{};
  /// The longest time without progress while bytes are unsent.
  Duration write_timeout = std::chrono::seconds(60);
  /// The time limit for the rest of a message. It starts when on_message leaves bytes in its
  /// buffer, and restarts when on_message consumes some. A peer that sends a message byte by byte
  /// never exceeds the timeouts above, but exceeds this one.
  Duration message_timeout{};
  /// If not zero, bytes per second: each received byte of an incomplete message extends
  /// `message_timeout` by 1/message_rate_min seconds, so that long messages may take longer. The
  /// time that is left never exceeds `message_timeout`.
  std::size_t message_rate_min = 0;
  /// After close_after_write(): the longest time without progress of the remaining bytes and, once
  /// the peer has acknowledged them, until it closes its side. Then the connection is reset. While
  /// the server shuts down, it waits at most a second for a peer that has acknowledged everything.
  Duration linger = std::chrono::seconds(10);
};

}  // namespace tambour

#pragma GCC visibility pop
