// Timer precision: the time between a timer's deadline and its callback, in an idle process.
//
// Each library is configured for its highest precision. The floor is a bare timerfd, to which no
// timer slack applies. A timer that expires early is an error and ends the measurement.
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

/// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
SleepOptions parse_sleep_options(int argc, char** argv);

/// The interface of a subject.
template <class Subject>
concept SleepSubject = std::default_initializable<Subject> && requires(Subject subject) {
  /// Runs the loop until one timer of this length has expired.
  subject.sleep(std::int64_t{});
  { subject.info() } -> std::same_as<SubjectInfo>;
};

/// Records the lateness of each sleep; fails if a sleep ended early.
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
template <SleepSubject Subject>
int run_sleep(int argc, char** argv) {
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
  report.print(subject.info());
  return 0;
}

}  // namespace bench
