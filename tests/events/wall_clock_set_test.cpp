// The wall clock is set by an hour and by ten years, forwards and backwards: wall-clock timers
// follow immediately, and other timers are not affected.
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/settable_clock.h"

namespace tambour::wall_clock_set_test {
namespace {

using namespace std::chrono_literals;

class WallClockSet : public SettableClockTest {
 protected:
  /// Sets the clock to a full hour, so that no half hour begins unless a test sets the clock.
  void SetUp() override {
    SettableClockTest::SetUp();
    settable.set_by(1h - wall_now().time_since_epoch() % 1h);
  }
};

TAMBOUR_ON_EVERY_BACKEND(WallClockSet);

/// The offsets by which the clock is set, and then set back.
constexpr Duration leaps[] = {1h, -1h, 24h * 365 * 10, -24h * 365 * 10};

TEST_P(WallClockSet, absolute_times_follow_the_new_time) {
  for (const Duration leap : leaps) {
    calls = 0;
    WallTimer passed(loop(), count());
    WallTimer ahead(loop(), [this] { calls += 100; });
    Timer monotonic(loop(), [this] { calls += 10; });
    ASSERT_TRUE(passed.start_at(wall_now() + std::chrono::abs(leap) - 1min));
    ASSERT_TRUE(ahead.start_at(wall_now() + leap + 10ms));
    if (leap < Duration::zero()) {
      // The timer is due, but the clock changes before its callback is invoked.
      monotonic.start(20ms);
      settable.set_by(leap);
      EXPECT_TRUE(run_until([this] { return calls == 110; }));
    } else {
      run_iterations();
      EXPECT_EQ(calls, 0);
      monotonic.start(20ms);
      settable.set_by(leap);
      EXPECT_TRUE(run_until([this] { return calls == 111; }));
    }
    settable.set_by(-leap);
    run_iterations();
  }
}

TEST_P(WallClockSet, intervals_follow_the_new_time) {
  for (const Duration leap : leaps) {
    calls = 0;
    WallTimer timer(loop(), count());
    ASSERT_TRUE(timer.start_every(30min));
    run_iterations();
    settable.set_by(leap);
    EXPECT_TRUE(run_until([&] { return std::chrono::abs(timer.time() - wall_now()) <= 30min; }));
    run_iterations();
    // All expiries that the clock jumped over cause one callback.
    EXPECT_EQ(calls, leap > Duration::zero() ? 1 : 0);
    EXPECT_GT(timer.time(), wall_now());
    EXPECT_EQ(timer.time().time_since_epoch() % 30min, Duration::zero());
    settable.set_by(-leap);
    run_iterations();
  }
}

TEST_P(WallClockSet, times_are_recomputed) {
  for (const Duration leap : leaps) {
    calls = 0;
    std::vector<WallTime> asked_at;
    WallTimer timer(loop(), count());
    ASSERT_TRUE(timer.start_by([&](WallTime now) {
      asked_at.push_back(now);
      return now + 24h * 365 * 100;
    }));
    run_iterations();
    ASSERT_EQ(asked_at.size(), 1U);
    settable.set_by(leap);
    EXPECT_TRUE(run_until([&] { return asked_at.size() == 2; }));
    EXPECT_GE(std::chrono::abs(asked_at[1] - asked_at[0]), std::chrono::abs(leap) - 1min);
    run_iterations();
    EXPECT_EQ(asked_at.size(), 2U);
    EXPECT_EQ(calls, 0);
    settable.set_by(-leap);
    run_iterations();
  }
}

TEST_P(WallClockSet, a_change_while_the_timer_is_being_armed_is_not_missed) {
  WallTimer timer(loop(), count());
  settable.set_before_arming = true;
  ASSERT_TRUE(timer.start_every(1h));
  // The kernel reports the change here, so read(2) does not report it again.
  settable.offset_ns -= Duration(24h).count();
  settable.set_before_arming = true;
  WallTimer sooner(loop(), count());
  ASSERT_TRUE(sooner.start_at(wall_now() + 24h + 1ms));
  EXPECT_TRUE(run_until([&] { return timer.time() - wall_now() <= 1h; }));
  EXPECT_EQ(calls, 0);
}

TEST_P(WallClockSet, the_clock_may_be_set_back_by_a_callback_of_the_same_iteration) {
  WallTimer first(loop(), [this] {
    ++calls;
    settable.set_by(-1h);
  });
  WallTimer once(loop(), count());
  WallTimer hourly(loop(), count());
  first.set_priority(1);
  const WallTime due = wall_now();
  ASSERT_TRUE(first.start_at(due));
  ASSERT_TRUE(once.start_at(due));
  ASSERT_TRUE(hourly.start_every(1h));
  EXPECT_TRUE(run_until([this] { return calls == 1; }));
  run_iterations();
  EXPECT_EQ(calls, 1) << "invoked early";
  EXPECT_EQ(once.time(), due);
  EXPECT_LE(hourly.time() - wall_now(), 1h);
  settable.set_by(1h);
  EXPECT_TRUE(run_until([this] { return calls == 3; }));
}

}  // namespace
}  // namespace tambour::wall_clock_set_test
