// The time of the Date field of responses.
#pragma once

#include <cstdint>

#include <tambour/detail/namespaces.h>

#include "base/clock.h"
#include "loop/core.h"

namespace tambour::http {

/// Reads the clock of the system once a millisecond at most, not for each response: a Date has the
/// precision of a second.
///
/// Thread: that of the loop.
class DateClock {
 public:
  /// The time of a response that begins in this iteration of the loop.
  [[nodiscard]] std::int64_t wall_ns(const detail::loop::Core& core) noexcept {
    constexpr std::int64_t stale_ns = 1'000'000;
    if (core.now_ns() >= end_ns_) {
      wall_ns_ = core.wall_ns();
      end_ns_ = detail::base::saturating_add(core.now_ns(), stale_ns);
    }
    return wall_ns_;
  }

 private:
  std::int64_t wall_ns_ = 0;
  std::int64_t end_ns_ = 0;  ///< When the clock is read again, by the time of the loop.
};

}  // namespace tambour::http
