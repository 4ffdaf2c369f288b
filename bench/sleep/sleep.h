// How exactly a loop sleeps: how long after its deadline a timer's callback runs, in an idle
// process.
//
// Each library sleeps as exactly as it can be asked to. The floor is a bare timerfd, which the
// kernel ends without slack. A timer that runs early ends the measurement: that is an error, not a
// figure.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "common/program.h"

namespace bench {

struct SleepOptions {
  std::int64_t length_ns = 0;
  int sleeps = 0;
  int iterations = 1;
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
SleepOptions parse_sleep_options(int argc, char** argv);

/// What a subject brings.
template <class Subject>
concept Sleeper = std::default_initializable<Subject> && requires(Subject subject) {
  /// Run the loop until one timer of this length has called back.
  subject.sleep(std::int64_t{});
  { subject.about() } -> std::same_as<About>;
};

/// Collects how late each sleep was; fails if it was early.
class Lateness {
 public:
  explicit Lateness(const SleepOptions& options) : options_(options) {}
  void add(std::int64_t slept_ns);
  void report_to(Report& report);

 private:
  SleepOptions options_;
  std::vector<double> late_ns_;
};

/// The main function of a sleep program.
template <Sleeper Subject>
int play_sleep(int argc, char** argv) {
  const SleepOptions options = parse_sleep_options(argc, argv);
  Subject subject;
  Report report;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    Lateness lateness(options);
    for (int i = 0; i < options.sleeps; ++i) {
      feed_watchdog();
      const auto begin = now_ns();
      subject.sleep(options.length_ns);
      lateness.add(now_ns() - begin);
    }
    lateness.report_to(report);
  }
  report.print(subject.about());
  return 0;
}

}  // namespace bench
