#include "sleep/sleep.h"

#include <algorithm>

#include "common/options.h"

namespace bench {

SleepOptions parse_sleep_options(int argc, char** argv) {
  SleepOptions options;
  int length_us = 0;
  CommandLine line("Measures the time between a timer's deadline and its callback.",
                   options.iterations);
  line.add("--length-us", length_us, "length of a sleep in microseconds", 1, 1'000'000);
  line.add("--sleeps", options.sleeps, "sleeps per iteration", 1, 1'000'000);
  line.parse_or_exit(argc, argv);
  options.length_ns = std::int64_t{length_us} * 1000;
  return options;
}

void Lateness::add(std::int64_t slept_ns) {
  if (slept_ns < options_.length_ns) {
    fail("a sleep of " + std::to_string(options_.length_ns) + " ns ended after " +
         std::to_string(slept_ns));
  }
  late_ns_.push_back(double(slept_ns - options_.length_ns));
}

void Lateness::report_to(Report& report) {
  std::ranges::sort(late_ns_);
  const auto at = [&](double part) { return late_ns_[std::size_t(part * (late_ns_.size() - 1))]; };
  report.add({{{"late_ns", at(0.5)}, {"late_p99_ns", at(0.99)}}});
}

}  // namespace bench
