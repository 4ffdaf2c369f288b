// Wall-clock timers: never early, aligned, computed, and never invoked after destruction.
#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/process.h"
#include "support/random.h"
#include "support/settable_clock.h"

namespace tambour::wall_timers_test {
namespace {

using namespace std::chrono_literals;

class WallTimers : public SettableClockTest {};

TAMBOUR_ON_EVERY_BACKEND(WallTimers);

TEST_P(WallTimers, a_timer_is_invoked_once_and_not_early) {
  const WallTime time = wall_now() + 20ms;
  WallTimer timer(loop(), [&] {
    EXPECT_GE(wall_now(), time);
    ++calls;
  });
  EXPECT_EQ(timer.time(), WallTime::max());
  ASSERT_TRUE(timer.start_at(time));
  EXPECT_EQ(timer.time(), time);
  run_iterations();
  // A busy machine may have passed the deadline already.
  EXPECT_TRUE(calls == 0 || wall_now() >= time);
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(timer.is_started());
}

TEST_P(WallTimers, a_past_time_is_due_in_the_next_iteration) {
  for (const WallTime past :
       {wall_now(), wall_now() - 24h, WallTime(Duration(0)), WallTime::min()}) {
    WallTimer timer(loop(), count());
    ASSERT_TRUE(timer.start_at(past));
    calls = 0;
    EXPECT_TRUE(run_until([this] { return calls == 1; }));
  }
}

TEST_P(WallTimers, the_maximum_time_point_is_never_due) {
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_at(WallTime::max()));
  EXPECT_TRUE(sleeps_through(20ms));
  settable.set_by(24h * 365 * 100);
  run_iterations();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(timer.is_started());
}

TEST_P(WallTimers, intervals_are_aligned) {
  constexpr Duration interval = 10ms;
  for (const Duration offset : {Duration(3ms), Duration(-7ms), Duration(103ms)}) {
    WallTime previous;
    calls = 0;
    WallTimer timer(loop(), [&] {
      const WallTime now = wall_now();
      EXPECT_GE(now.time_since_epoch() - offset, Duration::zero());
      EXPECT_GT(timer.time(), previous);
      previous = timer.time();
      if (++calls == 4) timer.stop();
    });
    const WallTime before = wall_now();
    ASSERT_TRUE(timer.start_every(interval, offset));
    EXPECT_GT(timer.time(), before);
    EXPECT_LE(timer.time() - wall_now(), interval);
    while (timer.is_started()) {
      EXPECT_EQ((timer.time().time_since_epoch() - 3ms) % interval, Duration::zero());
      loop().run_once();
    }
    EXPECT_EQ(calls, 4);
  }
}

TEST_P(WallTimers, an_interval_has_to_be_positive) {
  WallTimer timer(loop(), count());
  EXPECT_EQ(timer.start_every(0s).error(), system_error(EINVAL));
  EXPECT_EQ(timer.start_every(-1s).error(), system_error(EINVAL));
  EXPECT_FALSE(timer.is_started());
  ASSERT_TRUE(timer.start_every(Duration::max(), Duration::min()));
  ASSERT_TRUE(timer.start_every(1ns));
  EXPECT_TRUE(run_until([this] { return calls == 3; }));
}

TEST_P(WallTimers, a_computed_timer_computes_the_next_time_before_each_call) {
  std::vector<WallTime> asked_at;
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_by([&](WallTime now) {
    asked_at.push_back(now);
    return asked_at.size() <= 3 ? now + 5ms : WallTime::max();
  }));
  EXPECT_EQ(asked_at.size(), 1U);
  EXPECT_TRUE(run_until([this] { return calls == 3; }));
  EXPECT_EQ(asked_at.size(), 4U);
  EXPECT_EQ(timer.time(), WallTime::max());
  EXPECT_TRUE(timer.is_started());
  for (std::size_t i = 1; i < asked_at.size(); ++i) EXPECT_GE(asked_at[i] - asked_at[i - 1], 5ms);
  timer.recompute();
  run_iterations();
  EXPECT_EQ(asked_at.size(), 5U);
  EXPECT_EQ(calls, 3);
}

TEST_P(WallTimers, an_exception_of_the_calculation_stops_the_timer) {
  bool throws = true;
  const auto next = [&throws](WallTime now) {
    if (throws) throw std::runtime_error("no more Fridays");
    return now;
  };
  WallTimer timer(loop(), count());
  EXPECT_THROW(static_cast<void>(timer.start_by(next)), std::runtime_error);
  EXPECT_FALSE(timer.is_started());
  throws = false;
  ASSERT_TRUE(timer.start_by(next));
  throws = true;
  EXPECT_THROW(loop().run(), std::runtime_error);
  EXPECT_FALSE(timer.is_started());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(loop().stats().references, 0);
}

TEST_P(WallTimers, many_timers_are_invoked_in_the_order_of_their_times) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  const std::size_t number = 1000;
  std::vector<WallTimer> timers;
  std::vector<WallTime> times;
  WallTime latest;
  for (std::size_t i = 0; i < number; ++i) {
    timers.emplace_back(loop(), [&, i] {
      ++calls;
      EXPECT_GE(wall_now(), times[i]);
      // The expiries of one iteration are in order, and those of later iterations are later.
      EXPECT_GE(times[i], latest);
      latest = times[i];
    });
    times.push_back(wall_now() + 20ms + Duration(random.below(30'000'000)));
  }
  for (std::size_t i = 0; i < number; ++i) ASSERT_TRUE(timers[i].start_at(times[i]));
  for (std::size_t i = 0; i < number; i += 10) timers[i].stop();
  loop().run();
  EXPECT_EQ(calls, 900);
}

TEST_P(WallTimers, starting_again_replaces_the_former_time) {
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_at(wall_now()));
  ASSERT_TRUE(timer.start_every(24h));
  ASSERT_TRUE(timer.start_at(wall_now() + 24h));
  EXPECT_EQ(loop().stats().references, 1);
  EXPECT_TRUE(sleeps_through(10ms));
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(timer.start_at(wall_now()));
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(WallTimers, a_timer_may_be_moved_and_destroyed_anywhere) {
  const auto weight = std::make_shared<int>(7);
  std::vector<std::unique_ptr<WallTimer>> timers(5);
  for (auto& timer : timers) {
    timer = std::make_unique<WallTimer>(loop(), [&, weight] {
      ++calls;
      for (auto& entry : timers) entry.reset();
      EXPECT_EQ(*weight, 7);
    });
    ASSERT_TRUE(timer->start_at(wall_now()));
    timer = std::make_unique<WallTimer>(std::move(*timer));
    EXPECT_TRUE(timer->is_started());
  }
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(weight.use_count(), 1);
}

TEST_P(WallTimers, a_timer_may_outlive_its_loop) {
  WallTimer due(loop(), count());
  WallTimer later(loop(), count());
  ASSERT_TRUE(due.start_at(wall_now()));
  ASSERT_TRUE(later.start_at(wall_now() + 1h));
  destroy_loop();
  EXPECT_FALSE(due.is_started());
  EXPECT_FALSE(later.is_started());
  later.stop();
  EXPECT_EQ(calls, 0);
}

TEST_P(WallTimers, starting_a_later_timer_makes_no_system_call) {
  WallTimer first(loop(), count());
  ASSERT_TRUE(first.start_at(wall_now() + 1h));
  settable.set_before_arming = true;  // Applies to the next timerfd_settime(2).
  std::vector<WallTimer> later;
  for (int i = 0; i < 100; ++i) {
    later.emplace_back(loop(), count());
    ASSERT_TRUE(later.back().start_at(wall_now() + 2h));
  }
  EXPECT_TRUE(settable.set_before_arming);
}

TEST_P(WallTimers, works_independently_in_a_forked_child) {
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_at(wall_now() + 10ms));
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              loop().run();
              return calls == 1 ? 0 : 2;
            }),
            0);
  loop().run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tambour::wall_timers_test
