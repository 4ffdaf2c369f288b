// The two clocks of a loop, in seconds: `monotonic`, which timers use, and `wall`, which ev_now()
// returns. The wall clock is read rarely, because its offset from the monotonic clock changes
// rarely: if it is set, or slowly if it is synchronised with other machines.
#pragma once

#include <ev.h>

#include "base/clock.h"

namespace tambour::libev {

class Clock {
 public:
  Clock() noexcept {
    monotonic = read_monotonic();
    read_wall();
  }

  static ev_tstamp read_monotonic() noexcept { return seconds(CLOCK_MONOTONIC); }
  static ev_tstamp wall_now() noexcept { return seconds(CLOCK_REALTIME); }

  /// Updates both times. Returns true if the wall clock has been set.
  bool update() noexcept {
    monotonic = read_monotonic();
    if (monotonic - compared_at_ < least_jump / 2) [[likely]] {
      wall = distance_ + monotonic;
      return false;
    }
    return compare();
  }

  /// Like update(), but always reads the wall clock.
  void synchronise() noexcept {
    monotonic = read_monotonic();
    read_wall();
  }

  ev_tstamp monotonic;
  ev_tstamp wall;

 private:
  static constexpr ev_tstamp least_jump = 1.;  ///< In seconds; less is drift or noise.

  static ev_tstamp seconds(clockid_t clock) noexcept {
    timespec now;
    ::clock_gettime(clock, &now);
    return static_cast<ev_tstamp>(now.tv_sec) + static_cast<ev_tstamp>(now.tv_nsec) * 1e-9;
  }

  void read_wall() noexcept {
    wall = wall_now();
    distance_ = wall - monotonic;
    compared_at_ = monotonic;
  }

  bool compare() noexcept {
    const ev_tstamp before = distance_;
    // The process may have been preempted between the readings of the two clocks, so a jump counts
    // only if it is observed repeatedly.
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (attempt > 0) monotonic = read_monotonic();
      read_wall();
      const ev_tstamp jump = before - distance_;
      if (jump < least_jump && jump > -least_jump) return false;
    }
    return true;
  }

  ev_tstamp distance_ = 0;     ///< The wall clock minus the monotonic clock.
  ev_tstamp compared_at_ = 0;  ///< The monotonic time of the last comparison.
};

}  // namespace tambour::libev
