// Time limits of the reads and writes of tasks on a stream.
//
// A timer rather than timeout(), because a connection of a server has one for its whole life: a
// limit costs neither a task nor an allocation. When it expires, the pending read or write fails;
// the stream stays open, and the owner decides what follows.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/loop/timer.h>
#include <tambour/net/stream.h>

#include "base/failure.h"

namespace tambour::detail::net {

/// The time limit of reads. A read is between start() and finish(). The stream must outlive it.
///
/// A server begins a read for each request, and most reads end long before their limits. So the
/// timer stays started when a read has ended, and is started again only for an earlier deadline, or
/// when it expires.
class ReadTimer {
 public:
  explicit ReadTimer(Stream& stream);
  ReadTimer(const ReadTimer&) = delete;
  ReadTimer& operator=(const ReadTimer&) = delete;

  /// Begins a read with a time limit; zero: none.
  void start(Duration limit) noexcept;
  void start_at(TimePoint deadline) noexcept;  ///< `never`: no limit.
  /// Makes the limit of the current read expire at `deadline` unless it does so earlier.
  void end_by(TimePoint deadline) noexcept;
  /// Returns what the read has returned: ETIMEDOUT if the limit has expired.
  [[nodiscard]] Result<std::size_t> finish(Result<std::size_t> received) noexcept {
    deadline_ = never;
    if (!received && has_expired_) return base::failure(ETIMEDOUT);
    return received;
  }

 private:
  void check() noexcept;

  Stream& stream_;
  TimePoint deadline_ = never;  ///< Of the read, at or after that of the timer.
  Timer timer_;
  bool has_expired_ = false;
};

/// The time limit of writes. A write is between start() and finish(). The stream must outlive it.
///
/// The timer of a limit without progress stays started when a write has ended, like that of reads.
class WriteTimer {
 public:
  /// `unsent` returns the number of bytes that are left of the current write: the limit then is the
  /// longest time without progress, which is detected after at most twice the limit. If it is
  /// empty, the limit is the time for the whole write.
  explicit WriteTimer(Stream& stream, Callback<std::uint64_t()> unsent = {});
  WriteTimer(const WriteTimer&) = delete;
  WriteTimer& operator=(const WriteTimer&) = delete;

  /// Begins a write of `unsent` bytes with a time limit; zero: none.
  void start(Duration limit, std::uint64_t unsent = 0) noexcept;
  /// The write has ended, or its coroutine was destroyed.
  void stop() noexcept;
  /// Returns what the write has returned: ETIMEDOUT if the limit has expired.
  [[nodiscard]] Result<> finish(Result<> written) noexcept;

 private:
  void check() noexcept;

  Stream& stream_;
  Callback<std::uint64_t()> unsent_;
  Timer timer_;
  Duration limit_{};
  std::uint64_t unsent_before_ = 0;  ///< When the timer was started.
  bool is_writing_ = false;
  bool is_new_ = false;  ///< The write has begun since the timer was started.
  bool has_expired_ = false;
};

}  // namespace tambour::detail::net
