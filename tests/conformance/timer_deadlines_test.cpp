// Timer expiry: never early, in order, and at the limits of the time range.
#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::timer_deadlines_test {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

class TimerDeadlines : public test::OnEveryBackend {
 protected:
  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(TimerDeadlines);

// Measured against the clock as read before start(), the earliest time that it can count from.
TEST_P(TimerDeadlines, are_never_met_early) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  struct Case {
    std::unique_ptr<Timer> timer;
    TimePoint earliest;
  };
  std::vector<Case> cases(4000);
  for (Case& one : cases) {
    one.timer = std::make_unique<Timer>(loop(), [&one, this] {
      EXPECT_GE(Clock::now(), one.earliest);
      EXPECT_GE(loop().now(), one.earliest);
      ++calls;
    });
    const Duration delay(random.below(20'000'000));
    one.earliest = Clock::now() + delay;
    one.timer->start(delay);
  }
  loop().run();
  EXPECT_EQ(calls, 4000);
}

// One timer at a time, so that the kernel's timeout is that of the timer.
TEST_P(TimerDeadlines, are_never_met_early_by_the_wait_itself) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  TimePoint earliest;
  Timer timer(loop(), [&] {
    EXPECT_GE(Clock::now(), earliest);
    ++calls;
  });
  for (int i = 0; i < 300; ++i) {
    const Duration delay(random.below(2'000'000));
    earliest = Clock::now() + delay;
    timer.start(delay);
    loop().run();
  }
  EXPECT_EQ(calls, 300);
}

TEST_P(TimerDeadlines, are_met_in_their_order) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  std::vector<Timer> timers;
  TimePoint last;
  const TimePoint start = Clock::now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint deadline = start + std::chrono::microseconds(random.below(5000));
    timers.emplace_back(loop(), [&last, deadline] {
      EXPECT_LE(last, deadline);
      last = deadline;
    });
    timers.back().start_at(deadline);
  }
  loop().run();
  EXPECT_GT(last, TimePoint());
}

TEST_P(TimerDeadlines, zero_negative_or_past_are_met_in_the_next_iteration) {
  Timer timer(loop(), [this] { ++calls; });
  const auto expect_due = [&] {
    EXPECT_TRUE(timer.is_started());
    const int before = calls;
    EXPECT_LE(timer.deadline(), Clock::now());
    loop().run_ready();
    EXPECT_EQ(calls, before + 1);
    EXPECT_FALSE(timer.is_started());
  };
  for (const Duration delay : {Duration::zero(), Duration(-1), Duration(-1h), Duration::min()}) {
    timer.start(delay);
    expect_due();
    timer.reset(delay);
    expect_due();
  }
  for (const TimePoint deadline :
       {TimePoint(), TimePoint(Duration(-5)), TimePoint::min(), TimePoint(Clock::now())}) {
    timer.start_at(deadline);
    expect_due();
  }
  EXPECT_TRUE(timer.start(Seconds(-infinity)));
  expect_due();
  EXPECT_TRUE(timer.start(Seconds(-0.5)));
  expect_due();
  EXPECT_TRUE(timer.start(Seconds(0)));
  expect_due();
}

TEST_P(TimerDeadlines, beyond_the_clock_are_never_met) {
  Timer timer(loop(), [] { FAIL(); });
  const auto expect_never = [&] {
    EXPECT_TRUE(timer.is_started());
    EXPECT_EQ(timer.deadline(), never);
    run_iterations();
    EXPECT_TRUE(timer.is_started());
    timer.stop();
  };
  timer.start(Duration::max());
  expect_never();
  timer.start(Duration::max() - 1ns, Duration::max());
  expect_never();
  timer.start_at(never);
  expect_never();
  timer.reset(Duration::max());
  expect_never();
  EXPECT_TRUE(timer.start(Seconds(infinity)));
  expect_never();
  EXPECT_TRUE(timer.start(Seconds(std::numeric_limits<double>::max())));
  expect_never();
  EXPECT_TRUE(timer.start(Seconds(1e10), Seconds(infinity)));
  expect_never();
}

TEST_P(TimerDeadlines, beyond_the_clock_do_not_hide_the_others) {
  Timer last(loop(), [] { FAIL(); });
  Timer late(loop(), [] { FAIL(); });
  last.start_at(never);
  late.start_at(never - 1ns);
  Timer soon(loop(), [this] {
    ++calls;
    loop().stop();
  });
  soon.start(1ms);
  loop().run();
  EXPECT_EQ(calls, 1);
}

// A timeout of 292 years must be a valid system call argument.
TEST_P(TimerDeadlines, far_in_the_future_can_be_waited_for) {
  for (const TimePoint deadline : {never, never - 1ns, TimePoint(Clock::now() + 24h * 365 * 100)}) {
    Timer timer(loop(), [] { FAIL(); });
    timer.start_at(deadline);
    EventLoop& sleeping = loop();
    sleeping.wake();
    sleeping.run_once();
    EXPECT_TRUE(timer.is_started());
  }
}

TEST_P(TimerDeadlines, that_are_nan_are_rejected_and_change_nothing) {
  Timer timer(loop(), [this] { ++calls; });
  const auto refused = [](const Result<>& result) {
    return !result && result.error() == system_error(EINVAL);
  };
  EXPECT_TRUE(refused(timer.start(Seconds(not_a_number))));
  EXPECT_TRUE(refused(timer.start(Seconds(1), Seconds(not_a_number))));
  EXPECT_TRUE(refused(timer.start(Seconds(not_a_number), Seconds(1))));
  EXPECT_FALSE(timer.is_started());
  timer.start(1ms);
  const TimePoint deadline = timer.deadline();
  EXPECT_TRUE(refused(timer.start(Seconds(-not_a_number))));
  EXPECT_EQ(timer.deadline(), deadline);
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(TimerDeadlines, in_floating_point_are_rounded_up) {
  Timer timer(loop(), [this] { ++calls; });
  const TimePoint before = Clock::now();
  EXPECT_TRUE(timer.start(Seconds(0.0012)));
  EXPECT_GE(timer.deadline(), before + 1200us);
  loop().run();
  EXPECT_GE(Clock::now(), before + 1200us);
  // A fraction of a nanosecond is rounded up.
  std::chrono::duration<float, std::nano> fraction(0.25F);
  const TimePoint now = loop().now();
  EXPECT_TRUE(timer.start(fraction));
  EXPECT_GT(timer.deadline(), now);
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(TimerDeadlines, an_interval_that_overflows_ends_at_never) {
  for (const Duration interval : {Duration::max(), Duration::max() - 1ns, Duration::max() / 2}) {
    Timer timer(loop(), [this] { ++calls; });
    timer.start(0ms, interval);
    calls = 0;
    run_iterations(3);
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(timer.is_started());
    EXPECT_GT(timer.deadline(), Clock::now() + 24h * 365 * 100);
    timer.reset();
    run_iterations(3);
    EXPECT_EQ(calls, 1);
  }
}

TEST_P(TimerDeadlines, are_returned_by_deadline) {
  Timer timer(loop(), [] {});
  EXPECT_EQ(timer.deadline(), never);
  const TimePoint before = Clock::now();
  timer.start(1h);
  EXPECT_GE(timer.deadline(), before + 1h);
  EXPECT_LE(timer.deadline(), Clock::now() + 1h);
  const TimePoint exact = before + 2h;
  timer.start_at(exact);
  EXPECT_EQ(timer.deadline(), exact);
  timer.reset(3h);
  EXPECT_EQ(timer.deadline(), loop().now() + 3h);
  timer.stop();
  EXPECT_EQ(timer.deadline(), never);
}

}  // namespace
}  // namespace tambour::timer_deadlines_test
