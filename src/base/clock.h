// Clocks as nanosecond counts, in which timers state their deadlines.
#pragma once

#include <cstdint>
#include <ctime>
#include <limits>

namespace tambour::base {

inline constexpr std::int64_t ns_per_s = 1'000'000'000;
inline constexpr std::int64_t end_of_time_ns = std::numeric_limits<std::int64_t>::max();

inline std::int64_t monotonic_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * ns_per_s + now.tv_nsec;
}

/// CLOCK_REALTIME, which users and other programs can set: nanoseconds since 1970.
inline std::int64_t wall_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * ns_per_s + now.tv_nsec;
}

/// Returns a + b, or end_of_time_ns on overflow. `a` is a time and not negative.
inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? end_of_time_ns : sum;
}

inline timespec to_timespec(std::int64_t ns) noexcept {
  return {.tv_sec = ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

}  // namespace tambour::base
