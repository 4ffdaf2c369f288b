// Progress of sending, as the kernel and the peer report it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backend/system.h"

namespace tambour::detail::net {

/// Sending makes progress when the kernel accepts bytes or the peer acknowledges some.
///
/// The kernel accepts more only after a large part of its send buffer, which may hold megabytes,
/// has become free. Progress of a slow peer shows only in what the peer has acknowledged, which the
/// kernel does not report: the owner takes a sample when a limit is about to expire. All times are
/// nanoseconds of the monotonic clock. Holds no timer.
class SendProgress {
 public:
  explicit SendProgress(std::int64_t now_ns) noexcept : progressed_ns_(now_ns) {}

  /// The last known progress: when the kernel last accepted bytes, when bytes began to wait, or
  /// when a sample showed that the peer had acknowledged more.
  [[nodiscard]] std::int64_t progressed_ns() const noexcept { return progressed_ns_; }
  [[nodiscard]] std::int64_t sampled_ns() const noexcept { return sampled_ns_; }
  /// Whether the kernel had nothing to send at the last sample.
  [[nodiscard]] bool is_acknowledged() const noexcept { return queued_ == 0; }

  /// Bytes begin to wait.
  void restart(std::int64_t now_ns) noexcept { progressed_ns_ = now_ns; }
  /// The kernel has accepted `bytes`.
  void accept(std::int64_t bytes, std::int64_t now_ns) noexcept {
    progressed_ns_ = now_ns;
    accepted_ += bytes;
  }

  /// Returns true if the peer has acknowledged more bytes than at the last sample. Bytes that were
  /// sent and acknowledged between two samples do not count if the queue was empty at both: they
  /// were progress when the kernel accepted them.
  bool sample(backend::System& system, int fd, std::int64_t now_ns) noexcept {
    sampled_ns_ = now_ns;
    const auto queued = static_cast<std::int64_t>(system.unacknowledged(fd));
    const bool in_flight = std::max(queued, std::exchange(queued_, queued)) > 0;
    const std::int64_t acknowledged = accepted_ - queued;
    return acknowledged > std::exchange(acknowledged_, acknowledged) && in_flight;
  }

  /// Takes a sample, and notes the progress that it shows. `is_written`: nothing will be written
  /// any more, so the last acknowledgement cannot be followed by progress. Its time is not known,
  /// only that it came after the sample before; the earlier time keeps the limit of lingering.
  void update(backend::System& system, int fd, std::int64_t now_ns, bool is_written) noexcept {
    const std::int64_t before_ns = sampled_ns_;
    if (!sample(system, fd, now_ns)) return;
    const bool is_last = is_written && queued_ == 0;
    progressed_ns_ = is_last ? std::max(progressed_ns_, before_ns) : now_ns;
  }

 private:
  std::int64_t progressed_ns_;
  std::int64_t accepted_ = 0;      ///< The bytes that the kernel has accepted.
  std::int64_t queued_ = 0;        ///< The queue of the kernel at the last sample.
  std::int64_t acknowledged_ = 0;  ///< `accepted_` less `queued_`, at the last sample.
  std::int64_t sampled_ns_ = 0;
};

}  // namespace tambour::detail::net
