// The clock of timers and loops.
#pragma once

#include <chrono>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// CLOCK_MONOTONIC (clock_gettime(2)): cannot be set, never jumps, and does not advance while the
/// system is suspended.
using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<Clock, Duration>;

/// Later than any other time. A timer with this deadline never expires.
inline constexpr TimePoint never = TimePoint::max();

}  // namespace tambour

#pragma GCC visibility pop
