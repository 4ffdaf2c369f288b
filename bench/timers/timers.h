// What timers cost: to arm, to push back, to cancel, and to expire.
//
// Each operation is done to all timers, followed by one turn of the loop without waiting, so that
// whatever a library puts off until its turn is counted too. Timers are touched in a new random
// order for reset and for cancel: in the order of creation, the memory would be fetched before it
// is asked for, which no server's connections do.
//
// Connections of a server under way were last heard of at any time, so that what is left of their
// idle timeouts is spread, and pushing one back puts it behind all others.
//
// A lazy implementation puts work off further, until the former deadline of a timer comes up. That
// is paid once then, however often the timer was pushed back. So both operations are measured once
// more, as they are for a timer that is changed only once: the former deadlines are short, and the
// turn that comes after them is counted too.
//
// The trap: with few timers, the clock and the turn would be measured. Small sets are therefore
// repeated until each operation has been done --operations times (100,000).
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "common/program.h"

namespace bench {

/// What the command line of a timers program says.
struct TimerOptions {
  int timers = 0;
  int operations = 100'000;
  int iterations = 1;
};

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
TimerOptions parse_timer_options(int argc, char** argv);

/// What a subject's callback increments, and does nothing besides.
struct Expiries {
  long count = 0;
};

/// What a subject brings. Timers are numbered from 0; each is armed, reset, and cancelled, then
/// started once and left to expire.
template <class Subject>
concept Timekeeper = std::constructible_from<Subject, int, Expiries&> &&
                     requires(Subject subject, int timer, double seconds) {
                       /// Start an idle timeout, of which reset may follow.
                       subject.arm(timer, seconds);
                       /// Push it back to so many seconds from now.
                       subject.reset(timer, seconds);
                       /// Stop it before it expires.
                       subject.cancel(timer);
                       /// Start a timer that expires once, is never reset, and increments
                       /// Expiries::count.
                       subject.once(timer, seconds);
                       /// Run the loop once without waiting, the timers that are due included.
                       subject.turn();
                       { subject.about() } -> std::same_as<About>;
                     };

/// Waits on the processor until every timer armed so far with at most `seconds` is due by any clock
/// that a library may go by: some count whole milliseconds, some CLOCK_MONOTONIC_COARSE's ticks.
void busy_wait_until_due(double seconds);

/// The totals of one iteration, in nanoseconds, and how many operations of each kind they hold.
struct TimerTotals {
  std::int64_t arm = 0;
  std::int64_t reset = 0;
  std::int64_t cancel = 0;
  std::int64_t expire = 0;
  long operations = 0;
};

/// The intervals and orders that all subjects share: same seeds, same draws.
class TimerPlan {
 public:
  explicit TimerPlan(int timers);

  /// An idle timeout for each, 60 to 61 s. The drum's 10 s would be too short here: a million
  /// timers of the slowest peer take longer than that to be armed and reset.
  const std::vector<double>& intervals() const { return intervals_; }
  /// What is left of it, half to all: connections were last heard of at any time.
  const std::vector<double>& left() const { return left_; }
  /// 0 to 10 ms, for each timer.
  const std::vector<double>& delays() const { return delays_; }
  static constexpr double delay_max = 0.010;
  /// All timers in a new random order; valid until the next call.
  const std::vector<int>& shuffled();

 private:
  std::vector<double> intervals_;
  std::vector<double> left_;
  std::vector<double> delays_;
  std::vector<int> order_;
  std::minstd_rand random_{1};
};

/// Does `operation`, takes one turn, and returns how long that took.
template <Timekeeper Subject, std::invocable Operation>
std::int64_t measure(Subject& subject, Operation operation) {
  feed_watchdog();
  const auto begin = now_ns();
  operation();
  subject.turn();
  return now_ns() - begin;
}

/// Arms, resets and cancels all timers; then arms them again and lets them expire.
template <Timekeeper Subject>
void measure_all(Subject& subject, TimerPlan& plan, const Expiries& expiries, TimerTotals& totals) {
  const int timers = int(plan.left().size());
  const long before = expiries.count;
  totals.operations += timers;
  totals.arm += measure(subject, [&] {
    for (int i = 0; i < timers; ++i) subject.arm(i, plan.left()[i]);
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
    while (expiries.count - before < timers) subject.turn();
  });
  if (expiries.count - before != timers) fail("a timer expired more than once");
}

/// What `change` costs, of one timer, with all that is left to do when the former deadlines come
/// up, of which none is a deadline any more. All are stopped, before and after.
template <Timekeeper Subject, std::invocable<int> Change>
double measure_whole(Subject& subject, TimerPlan& plan, const Expiries& expiries, Change change) {
  const int timers = int(plan.delays().size());
  const long before = expiries.count;
  // None comes up before all are changed, by any implementation that puts something off.
  const double changed = 5e-7 * timers;
  for (int i = 0; i < timers; ++i) subject.arm(i, changed + plan.delays()[i]);
  const std::vector<int>& order = plan.shuffled();
  std::int64_t took = measure(subject, [&] {
    for (const int i : order) change(i);
  });
  busy_wait_until_due(changed + TimerPlan::delay_max);
  took += measure(subject, [] {});
  if (expiries.count != before) fail("a timer expired that was pushed back or cancelled");
  for (int i = 0; i < timers; ++i) subject.cancel(i);
  subject.turn();
  return double(took) / timers;
}

/// The main function of a timers program.
template <Timekeeper Subject>
int play_timers(int argc, char** argv) {
  const TimerOptions options = parse_timer_options(argc, argv);
  feed_watchdog();
  TimerPlan plan(options.timers);
  Expiries expiries;
  Subject subject(options.timers, expiries);
  Report report;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    TimerTotals totals;
    while (totals.operations < options.operations) measure_all(subject, plan, expiries, totals);
    const double reset_whole = measure_whole(subject, plan, expiries,
                                             [&](int i) { subject.reset(i, plan.intervals()[i]); });
    const double cancel_whole =
        measure_whole(subject, plan, expiries, [&](int i) { subject.cancel(i); });
    const auto each = [&](std::int64_t total) { return double(total) / totals.operations; };
    report.add({{{"arm_ns", each(totals.arm)},
                 {"reset_ns", each(totals.reset)},
                 {"cancel_ns", each(totals.cancel)},
                 {"expire_ns", each(totals.expire)},
                 {"reset_whole_ns", reset_whole},
                 {"cancel_whole_ns", cancel_whole}}});
  }
  report.print(subject.about());
  return 0;
}

}  // namespace bench
