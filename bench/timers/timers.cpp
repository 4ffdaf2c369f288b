// The command line, the random intervals, and the wait until all timers are due.
#include "timers/timers.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <string>

#include "common/options.h"

namespace bench {

TimerOptions parse_timer_options(int argc, char** argv) {
  TimerOptions options;
  CommandLine line("Measures the cost of timers: arm, reset, cancel, expire.", options.iterations);
  line.add("--timers", options.timers, "timers in the loop", 2, 100'000'000);
  line.add_optional("--deadlines", options.same_timeout,
                    "idle timeouts of 60 to 61 s, or of 30 s for all",
                    {{"spread", false}, {"same", true}});
  line.add_optional("--operations", options.operations,
                    "repeat until each operation was done this many times", 1, 100'000'000);
  line.parse_or_exit(argc, argv);
  return options;
}

void busy_wait_until_due(double seconds) {
  timespec tick;
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  constexpr double whole_milliseconds = 0.001;
  const double wait = seconds + double(tick.tv_nsec) / 1e9 + whole_milliseconds;
  const auto due = now_ns() + std::int64_t(wait * 1e9);
  while (now_ns() < due) {
  }
}

TimerPlan::TimerPlan(const TimerOptions& options)
    : intervals_(options.timers, 30),
      remaining_(options.timers, 30),
      delays_(options.timers),
      order_(options.timers) {
  srand48(1);
  if (!options.same_timeout) {
    for (double& interval : intervals_) interval = 60 + drand48();
    for (int i = 0; i < options.timers; ++i) remaining_[i] = intervals_[i] * (1 + drand48()) / 2;
  }
  for (double& delay : delays_) delay = delay_max * drand48();
  std::iota(order_.begin(), order_.end(), 0);
}

const std::vector<int>& TimerPlan::shuffled() {
  std::shuffle(order_.begin(), order_.end(), random_);
  return order_;
}

}  // namespace bench
