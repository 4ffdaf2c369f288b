// The two times of a loop, in seconds: `monotonic`, which timers are measured in, and `wall`, which
// is what ev_now() says. The wall clock is read seldom, since the distance between the two changes
// seldom: when somebody sets it, or slowly, when it is kept in step with others.
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

  /// Reads the time. True where the wall clock turns out to have been set.
  bool update() noexcept {
    monotonic = read_monotonic();
    if (monotonic - compared_at_ < least_jump / 2) [[likely]] {
      wall = distance_ + monotonic;
      return false;
    }
    return compare();
  }

  /// The same, and does look at the wall clock.
  void synchronise() noexcept {
    monotonic = read_monotonic();
    read_wall();
  }

  ev_tstamp monotonic;
  ev_tstamp wall;

 private:
  static constexpr ev_tstamp least_jump = 1.;  ///< In seconds; less is drift, or noise.

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
    // Between the readings of the two clocks the process may have been held up: a jump has to be
    // seen twice.
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (attempt > 0) monotonic = read_monotonic();
      read_wall();
      const ev_tstamp jump = before - distance_;
      if (jump < least_jump && jump > -least_jump) return false;
    }
    return true;
  }

  ev_tstamp distance_ = 0;     ///< From the monotonic to the wall clock.
  ev_tstamp compared_at_ = 0;  ///< When the two were read together last, by the former.
};

}  // namespace tambour::libev
