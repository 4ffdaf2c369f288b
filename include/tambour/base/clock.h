// The clock of timers and loops, and times of the wall clock.
#pragma once

#include <chrono>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// CLOCK_MONOTONIC (clock_gettime(2)): cannot be set, never jumps, and does not advance while the
/// system is suspended.
using Clock = std::chrono::steady_clock;
/// A time span in nanoseconds: `5ms`, `2s` with the literals of std::chrono.
using Duration = std::chrono::nanoseconds;
/// A time of Clock, such as a deadline.
using TimePoint = std::chrono::time_point<Clock, Duration>;

/// Later than any other time. A timer with this deadline never expires.
inline constexpr TimePoint never = TimePoint::max();

/// CLOCK_REALTIME, which can be set: nanoseconds since 1970 (UTC) without leap seconds. The range
/// ends in the year 2262.
using WallTime = std::chrono::sys_time<Duration>;

}  // namespace tambour

#pragma GCC visibility pop
