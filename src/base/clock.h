// Clocks as nanosecond counts, in which timers state their deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>

#include <tambour/base/clock.h>

namespace tambour::detail::base {

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

/// Returns a + b, or on overflow the end of the range that is next to the sum. Options may be
/// Duration::max(), so times and options are added with these functions; `tools/check style`
/// rejects `+`.
inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<std::int64_t>::min() : end_of_time_ns;
}

inline Duration saturating_add(Duration a, Duration b) noexcept {
  return Duration(saturating_add(a.count(), b.count()));
}

/// Returns `never` if `time` + `delay` exceeds the range of the clock.
template <class AnyClock>
std::chrono::time_point<AnyClock, Duration> saturating_add(
    std::chrono::time_point<AnyClock, Duration> time, Duration delay) noexcept {
  return std::chrono::time_point<AnyClock, Duration>(
      saturating_add(time.time_since_epoch(), delay));
}

/// Returns a * b, or on overflow the end of the range that is next to the product.
inline std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? std::numeric_limits<std::int64_t>::min() : end_of_time_ns;
}

inline timespec to_timespec(std::int64_t ns) noexcept {
  return {.tv_sec = ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

}  // namespace tambour::detail::base
