// The input of a connection: the bytes that have arrived, and the time limit of reads.
#pragma once

#include <cstddef>

#include <tambour/buffer.h>
#include <tambour/clock.h>
#include <tambour/event_loop.h>
#include <tambour/result.h>
#include <tambour/timer.h>

#include "http/server/interruptible_stream.h"

namespace tambour::http {

/// The maximum size of a read.
inline constexpr std::size_t read_bytes = std::size_t{64} * 1024;

/// A read of the stream into bytes() is between begin() or begin_until(), and end().
///
/// Thread: that of the loop.
class Input {
 public:
  Input(EventLoop& loop, InterruptibleStream& stream);

  [[nodiscard]] Buffer& bytes() noexcept { return bytes_; }
  [[nodiscard]] const Buffer& bytes() const noexcept { return bytes_; }

  /// Zero: no limit.
  void begin(Duration limit) noexcept;
  void begin_until(TimePoint deadline) noexcept;
  /// Returns ETIMEDOUT if the time limit has ended the read.
  [[nodiscard]] Result<std::size_t> end(Result<std::size_t> got) noexcept;

  void stop() noexcept { timer_.stop(); }

  /// The time limit applies to writes, too: while the connection is being closed.
  void limit_writes() noexcept { limits_writes_ = true; }
  /// Ends the current read at `deadline`, if its limit is later.
  void shorten(TimePoint deadline) noexcept;
  [[nodiscard]] bool has_expired() const noexcept { return has_expired_; }

 private:
  InterruptibleStream& stream_;
  Buffer bytes_;
  Timer timer_;
  bool has_expired_ = false;
  bool limits_writes_ = false;
};

}  // namespace tambour::http
