// The time that timers and loops go by.
#pragma once

#include <chrono>

#include <tambour/cxx23.h>

namespace tambour {

/// CLOCK_MONOTONIC (clock_gettime(2)): never set, never jumps, stands still while suspended.
using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<Clock, Duration>;

/// Later than any other time: a timer with this deadline never expires.
inline constexpr TimePoint never = TimePoint::max();

}  // namespace tambour
