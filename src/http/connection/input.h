// The input of a connection: the bytes that have arrived, and the time limit of reads.
#pragma once

#include <cstddef>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/stream.h>

#include "net/pace/stream_timers.h"

namespace tambour::http {

/// The maximum size of a read.
inline constexpr std::size_t read_bytes = std::size_t{64} * 1024;

/// A read of the stream into bytes() is between begin() or begin_until(), and end().
///
/// Thread: that of the loop.
class Input {
 public:
  explicit Input(Stream& stream) : timer_(stream) {}

  [[nodiscard]] Buffer& bytes() noexcept { return bytes_; }
  [[nodiscard]] const Buffer& bytes() const noexcept { return bytes_; }

  /// Zero: no limit.
  void begin(Duration limit) noexcept { timer_.start(limit); }
  /// `never`: no limit.
  void begin_until(TimePoint deadline) noexcept { timer_.start_at(deadline); }
  /// Returns ETIMEDOUT if the time limit has ended the read.
  [[nodiscard]] Result<std::size_t> end(Result<std::size_t> got) noexcept {
    return timer_.finish(got);
  }
  /// Ends the current read at `deadline`, if its limit is later.
  void shorten(TimePoint deadline) noexcept { timer_.end_by(deadline); }

 private:
  Buffer bytes_;
  detail::net::ReadTimer timer_;
};

}  // namespace tambour::http
