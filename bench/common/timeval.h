// Conversion of seconds for libevent.
#pragma once

#include <sys/time.h>

#include <cmath>

namespace bench {

inline timeval to_timeval(double seconds) {
  const double whole = std::floor(seconds);
  return {.tv_sec = time_t(whole), .tv_usec = suseconds_t((seconds - whole) * 1e6)};
}

}  // namespace bench
