// The cost of timers: arming, resetting (postponing), cancelling, and expiring.
//
// Each operation is applied to all timers, followed by one iteration of the loop without waiting,
// so that work which a library defers to its next iteration is included. Reset and cancel visit the
// timers in a new random order: in the order of creation, the hardware would prefetch the memory,
// which does not happen with the connections of a server.
//
// The connections of a running server were last active at different times. The remaining times of
// their idle timeouts are therefore distributed, and a reset moves a timer behind all others.
//
// A lazy implementation defers work further, until the previous deadline of a timer. That work is
// done once, however often the timer was postponed. Both operations are therefore measured a second
// time, for a timer that is changed only once: the previous deadlines are short, and the iteration
// after them is included.
//
// A server with two timers per connection changes them at every request: it stops the idle timeout,
// starts the timeout of the request, and later the reverse. This is measured over random
// connections, with one iteration of the loop for every hundred requests.
//
// With few timers, the clock and the iteration would dominate the result. Small sets are therefore
// repeated until each operation has been done --operations times (100,000).
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "common/program.h"

namespace bench {

/// The command line of a timers program.
struct TimerOptions {
  int timers = 0;
  bool same_timeout = false;
  int operations = 100'000;
  int iterations = 1;
};

/// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
TimerOptions parse_timer_options(int argc, char** argv);

/// The counter that a subject's timer callbacks increment; they do nothing else.
struct Expiries {
  long count = 0;
};

/// The interface of a subject. Timers are numbered from 0. Each is armed, reset and cancelled, and
/// then started once and left to expire.
template <class Subject>
concept TimerSubject = std::constructible_from<Subject, int, Expiries&> &&
                       requires(Subject subject, int timer, double seconds) {
                         /// Starts an idle timeout, which may be reset.
                         subject.arm(timer, seconds);
                         /// Postpones it to `seconds` from now.
                         subject.reset(timer, seconds);
                         /// Stops it before it expires.
                         subject.cancel(timer);
                         /// Starts a timer that expires once, is never reset, and increments
                         /// Expiries::count.
                         subject.once(timer, seconds);
                         /// Runs one iteration without waiting, including the timers that are due.
                         subject.run_pending();
                         { subject.info() } -> std::same_as<SubjectInfo>;
                       };

/// Busy-waits until every timer armed so far with at most `seconds` is due by every clock that a
/// library may use: some count milliseconds, some use the ticks of CLOCK_MONOTONIC_COARSE.
void busy_wait_until_due(double seconds);

/// The total times of one iteration in nanoseconds, and the number of operations of each kind.
struct TimerTotals {
  std::int64_t arm = 0;
  std::int64_t reset = 0;
  std::int64_t cancel = 0;
  std::int64_t expire = 0;
  long operations = 0;
};

/// The random intervals and orders, which are the same for all subjects.
class TimerPlan {
 public:
  explicit TimerPlan(const TimerOptions& options);

  /// The idle timeout of each timer, 60 to 61 s, or 30 s for all. The drum's 10 s would be too
  /// short: the slowest peer takes longer to arm and reset a million timers.
  const std::vector<double>& intervals() const { return intervals_; }
  /// The remaining part of each idle timeout, half to all of it; all of it if all are the same.
  const std::vector<double>& remaining() const { return remaining_; }
  /// The delay of each expiring timer, 0 to 10 ms.
  const std::vector<double>& delays() const { return delays_; }
  static constexpr double delay_max = 0.010;
  /// All timers in a new random order. The reference is valid until the next call.
  const std::vector<int>& shuffled();

 private:
  std::vector<double> intervals_;
  std::vector<double> remaining_;
  std::vector<double> delays_;
  std::vector<int> order_;
  std::minstd_rand random_{1};
};

/// Runs `operation` and one iteration of the loop, and returns the elapsed time.
template <TimerSubject Subject, std::invocable Operation>
std::int64_t measure(Subject& subject, Operation operation) {
  feed_watchdog();
  const auto begin = now_ns();
  operation();
  subject.run_pending();
  return now_ns() - begin;
}

/// Arms, resets and cancels all timers; then arms them again and lets them expire.
template <TimerSubject Subject>
void measure_all(Subject& subject, TimerPlan& plan, const Expiries& expiries, TimerTotals& totals) {
  const int timers = int(plan.remaining().size());
  const long before = expiries.count;
  totals.operations += timers;
  totals.arm += measure(subject, [&] {
    for (int i = 0; i < timers; ++i) subject.arm(i, plan.remaining()[i]);
  });
  const std::vector<int>& order = plan.shuffled();
  totals.reset += measure(subject, [&] {
    for (int i = 0; i < timers; ++i) subject.reset(order[i], plan.intervals()[i]);
  });
  plan.shuffled();
  totals.cancel += measure(subject, [&] {
    for (int i : order) subject.cancel(i);
  });

  if (expiries.count != before) fail("a timer of 30 s or more expired");
  for (int i = 0; i < timers; ++i) subject.once(i, plan.delays()[i]);
  busy_wait_until_due(TimerPlan::delay_max);
  totals.expire += measure(subject, [&] {
    while (expiries.count - before < timers) subject.run_pending();
  });
  if (expiries.count - before != timers) fail("a timer expired more than once");
}

/// Returns the cost of `change` per timer, including the work that is deferred to the previous
/// deadlines. No timer expires. All timers are stopped before and after the call.
template <TimerSubject Subject, std::invocable<int> Change>
double measure_with_deferred_work(Subject& subject, TimerPlan& plan, const Expiries& expiries,
                                  Change change) {
  const int timers = int(plan.delays().size());
  const long before = expiries.count;
  // No previous deadline is reached before all timers are changed.
  const double change_seconds = 5e-7 * timers;
  for (int i = 0; i < timers; ++i) subject.arm(i, change_seconds + plan.delays()[i]);
  const std::vector<int>& order = plan.shuffled();
  std::int64_t took = measure(subject, [&] {
    for (const int i : order) change(i);
  });
  busy_wait_until_due(change_seconds + TimerPlan::delay_max);
  took += measure(subject, [] {});
  if (expiries.count != before) fail("a timer expired although it was reset or cancelled");
  for (int i = 0; i < timers; ++i) subject.cancel(i);
  subject.run_pending();
  return double(took) / timers;
}

/// Returns the cost of one request, which cancels and arms two timers each.
template <TimerSubject Subject>
double measure_requests(Subject& subject, TimerPlan& plan, const TimerOptions& options) {
  constexpr double request_timeout = 40;
  constexpr int requests_per_iteration = 100;
  const int connections = options.timers / 2;
  for (int i = 0; i < connections; ++i) subject.arm(i, plan.intervals()[i]);
  subject.run_pending();
  std::int64_t took = 0;
  long requests = 0;
  while (requests < options.operations) {
    const std::vector<int>& order = plan.shuffled();
    took += measure(subject, [&] {
      for (int at = 0; at < connections; ++at) {
        const int idle = order[at] % connections;
        const int request = connections + idle;
        subject.cancel(idle);
        subject.arm(request, request_timeout);
        subject.cancel(request);
        subject.arm(idle, plan.intervals()[idle]);
        if (at % requests_per_iteration == 0) subject.run_pending();
      }
    });
    requests += connections;
  }
  for (int i = 0; i < connections; ++i) subject.cancel(i);
  subject.run_pending();
  return double(took) / double(requests);
}

/// The main function of a timers program.
template <TimerSubject Subject>
int run_timers(int argc, char** argv) {
  const TimerOptions options = parse_timer_options(argc, argv);
  feed_watchdog();
  TimerPlan plan(options);
  Expiries expiries;
  Subject subject(options.timers, expiries);
  Report report;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    TimerTotals totals;
    while (totals.operations < options.operations) measure_all(subject, plan, expiries, totals);
    const double reset_whole = measure_with_deferred_work(
        subject, plan, expiries, [&](int i) { subject.reset(i, plan.intervals()[i]); });
    const double cancel_whole =
        measure_with_deferred_work(subject, plan, expiries, [&](int i) { subject.cancel(i); });
    const double request = measure_requests(subject, plan, options);
    const auto entry = [&](std::int64_t total) { return double(total) / totals.operations; };
    report.add({{{"arm_ns", entry(totals.arm)},
                 {"reset_ns", entry(totals.reset)},
                 {"cancel_ns", entry(totals.cancel)},
                 {"expire_ns", entry(totals.expire)},
                 {"reset_whole_ns", reset_whole},
                 {"cancel_whole_ns", cancel_whole},
                 {"request_ns", request}}});
  }
  report.print(subject.info());
  return 0;
}

}  // namespace bench
