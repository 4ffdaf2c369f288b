// Lingering: closing a connection so that the peer gets everything that was written.
//
// If bytes arrive at a closed socket, the kernel resets the connection, and the peer may lose what
// it has not read yet. So the write side is shut down, and what the peer sends is read and
// discarded until it closes its side, or a limit is reached.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tambour/base/clock.h>
#include <tambour/bytes/buffer.h>
#include <tambour/loop/timer.h>
#include <tambour/net/stream.h>
#include <tambour/task/task.h>

#include "base/clock.h"
#include "net/pace/send_progress.h"

namespace tambour::detail::net {

/// The limit of lingering of a Connection while its server shuts down, after the peer has
/// acknowledged everything. Other limits: ConnectionLimits::linger, and http::ServerOptions::linger
/// with drain_timeout.
constexpr Duration drain_linger = std::chrono::seconds(1);

/// The longest time of lingering. While the server shuts down, a peer that keeps its connection
/// open does not hold it up.
[[nodiscard]] constexpr Duration linger_limit(Duration linger, bool drains,
                                              Duration drain_limit) noexcept {
  return drains ? std::min(linger, drain_limit) : linger;
}

/// The time limit of lingering for a Connection, which counts from the last progress of sending.
/// Lingering has to end soon after the last progress, because the program has no use for the
/// connection any more: while the peer has not acknowledged everything, the owner takes a sample in
/// every eighth of the limit. All times are nanoseconds of the monotonic clock. Holds no timer.
class LingerTime {
 public:
  void start(std::int64_t now_ns) noexcept { since_ns_ = now_ns; }
  [[nodiscard]] bool is_started() const noexcept { return since_ns_ > 0; }

  [[nodiscard]] std::int64_t deadline_ns(const SendProgress& progress,
                                         Duration limit) const noexcept {
    return base::saturating_add(std::max(progress.progressed_ns(), since_ns_), limit.count());
  }
  [[nodiscard]] static std::int64_t next_sample_ns(const SendProgress& progress,
                                                   Duration limit) noexcept {
    constexpr std::int64_t samples = 8;
    return base::saturating_add(progress.sampled_ns(), limit.count() / samples);
  }

 private:
  /// When the program had finished, or when the handshake was complete if that was later.
  std::int64_t since_ns_ = 0;
};

/// Lingering for tasks. The stream must outlive it; no other task may read or write.
class LingeringClose {
 public:
  explicit LingeringClose(Stream& stream);
  LingeringClose(const LingeringClose&) = delete;
  LingeringClose& operator=(const LingeringClose&) = delete;

  /// Shuts down the write side, within `shutdown_limit`, and then discards what the peer sends
  /// until it closes its side, within `linger`, both from now on. Zero: no limit for the first, and
  /// no wait for the peer. The caller closes the stream.
  [[nodiscard]] Task<> run(Duration linger, Duration shutdown_limit);
  /// Makes the limit expire at `deadline` unless it does so earlier.
  void end_by(TimePoint deadline) noexcept;

 private:
  Stream& stream_;
  Timer timer_;
  bool has_expired_ = false;
};

}  // namespace tambour::detail::net
