// Starting, repeating, resetting and stopping timers, inside callbacks and out.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::timer_operations_test {
namespace {

using namespace std::chrono_literals;

void be_busy_for(Duration time) {
  const TimePoint end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

class TimerOperations : public test::OnEveryBackend {
 protected:
  int calls = 0;
  TimePoint past = Clock::now() - 1s;
};

TAMBOUR_ON_EVERY_BACKEND(TimerOperations);

TEST_P(TimerOperations, a_single_timer_expires_once) {
  Timer timer(loop(), [&] {
    EXPECT_FALSE(timer.is_started());
    ++calls;
  });
  timer.start(1ms);
  EXPECT_TRUE(timer.is_started());
  loop().run();
  run_for(5ms);
  EXPECT_EQ(calls, 1);
}

TEST_P(TimerOperations, starting_again_replaces_the_deadline) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(1h);
  timer.start(1ms);
  loop().run();
  EXPECT_EQ(calls, 1);
  const TimePoint before = Clock::now();
  timer.start(1ms);
  timer.start(10ms);
  loop().run();
  EXPECT_GE(Clock::now(), before + 10ms);
  EXPECT_EQ(calls, 2);
}

TEST_P(TimerOperations, starting_once_ends_a_repetition) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(1h, 1ms);
  timer.start(1ms);
  loop().run();
  timer.start(1h, 1ms);
  timer.start_at(Clock::now());
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(TimerOperations, an_interval_of_zero_or_less_means_once) {
  for (const Duration interval : {Duration::zero(), Duration(-1), Duration::min()}) {
    Timer timer(loop(), [this] { ++calls; });
    timer.start(0ms, interval);
    loop().run();
  }
  EXPECT_EQ(calls, 3);
}

TEST_P(TimerOperations, repetitions_do_not_drift) {
  std::vector<TimePoint> deadlines;
  Timer timer(loop(), [&] {
    EXPECT_TRUE(timer.is_started());
    deadlines.push_back(timer.deadline());
    be_busy_for(100us);
    if (++calls == 10) timer.stop();
  });
  const Duration interval = 1ms;
  timer.start(0ms, interval);
  const TimePoint first = timer.deadline();
  loop().run();
  ASSERT_EQ(deadlines.size(), 10U);
  for (const TimePoint deadline : deadlines)
    EXPECT_EQ((deadline - first).count() % interval.count(), 0);
}

TEST_P(TimerOperations, missed_repetitions_are_skipped) {
  const Duration interval = 1ms;
  Timer timer(loop(), [&] {
    // The next expiry is at most one interval ahead, however many were missed.
    EXPECT_GT(timer.deadline(), loop().now());
    EXPECT_LE(timer.deadline(), loop().now() + interval);
    if (++calls == 5) return timer.stop();
    be_busy_for(5 * interval);
  });
  timer.start(0ms, interval);
  loop().run();
  EXPECT_EQ(calls, 5);
}

TEST_P(TimerOperations, reset_pushes_the_deadline_back) {
  Timer idle(loop(), [this] { ++calls; });
  Timer activity(loop(), [&] {
    idle.reset();
    EXPECT_EQ(idle.deadline(), loop().now() + 20ms);
    EXPECT_TRUE(idle.is_started());
  });
  activity.start(2ms, 2ms);
  idle.start(20ms);
  run_for(50ms);
  activity.stop();
  // However late the machine was, the activity was due before the timeout.
  EXPECT_EQ(calls, 0);
  const TimePoint deadline = idle.deadline();
  loop().run();
  EXPECT_GE(Clock::now(), deadline);
  EXPECT_EQ(calls, 1);
}

TEST_P(TimerOperations, reset_uses_the_most_recent_delay) {
  Timer timer(loop(), [this] { ++calls; });
  loop().update_now();
  timer.start(1h);
  timer.reset();
  EXPECT_EQ(timer.deadline(), loop().now() + 1h);
  timer.reset(2h);
  EXPECT_EQ(timer.deadline(), loop().now() + 2h);
  timer.reset();
  EXPECT_EQ(timer.deadline(), loop().now() + 2h);
  timer.start(1h, 3h);
  timer.reset();
  EXPECT_EQ(timer.deadline(), loop().now() + 3h);
  // reset() may set an earlier deadline as well.
  timer.reset(1ms);
  timer.stop();
  timer.reset(1ms);
  EXPECT_TRUE(timer.is_started());
  ASSERT_TRUE(run_until([this] { return calls == 1; }));
}

TEST_P(TimerOperations, reset_keeps_the_interval) {
  Timer timer(loop(), [&] {
    if (++calls == 3) timer.stop();
  });
  timer.start(1h, 1ms);
  timer.reset(0ms);
  loop().run();
  EXPECT_EQ(calls, 3);
}

TEST_P(TimerOperations, reset_starts_a_timer_that_has_expired) {
  Timer timer(loop(), [&] {
    if (++calls < 3) timer.reset();
  });
  timer.start(1ms);
  loop().run();
  EXPECT_EQ(calls, 3);
}

TEST_P(TimerOperations, stopping_twice_or_before_the_start_changes_nothing) {
  Timer timer(loop(), [] { FAIL(); });
  timer.stop();
  timer.start(1h);
  timer.stop();
  timer.stop();
  EXPECT_FALSE(timer.is_started());
  loop().run();
}

TEST_P(TimerOperations, stopped_timers_do_not_keep_the_loop) {
  std::vector<Timer> timers;
  for (int i = 0; i < 100; ++i) {
    timers.emplace_back(loop(), [] { FAIL(); });
    timers.back().start(std::chrono::milliseconds(i));
  }
  for (Timer& timer : timers) timer.stop();
  loop().run();
  timers[0].start(1h, 1h);
  timers[0].stop();
  loop().run();
}

// redis: deleting every timer before the next iteration dereferenced a null pointer.
TEST_P(TimerOperations, all_timers_may_be_destroyed_before_the_next_iteration) {
  {
    std::vector<Timer> timers;
    for (int i = 0; i < 100; ++i) {
      timers.emplace_back(loop(), [] { FAIL(); });
      timers.back().start(0ms);
    }
  }
  loop().run();
  run_iterations();
}

TEST_P(TimerOperations, stop_inside_its_own_callback) {
  Timer once(loop(), [&] {
    ++calls;
    once.stop();
  });
  Timer repeating(loop(), [&] {
    ++calls;
    repeating.stop();
    EXPECT_FALSE(repeating.is_started());
  });
  once.start(0ms);
  repeating.start(0ms, 1ms);
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(TimerOperations, restart_inside_its_own_callback) {
  std::array<int, 3> counts{};
  std::vector<Timer> timers;
  timers.reserve(3);
  timers.emplace_back(loop(), [&] {
    if (++counts[0] < 5) timers[0].start(0ms);
  });
  timers.emplace_back(loop(), [&] {
    if (++counts[1] < 5) return timers[1].start_at(past);
  });
  timers.emplace_back(loop(), [&] {
    // Changes from repeating to one-shot.
    timers[2].start(1ms);
    if (++counts[2] == 5) timers[2].stop();
  });
  timers[0].start(0ms);
  timers[1].start(0ms);
  timers[2].start(0ms, 1h);
  loop().run();
  EXPECT_EQ(counts, (std::array{5, 5, 5}));
}

// Both are due in this iteration; their deadlines determine the order.
TEST_P(TimerOperations, a_timer_that_is_due_can_still_be_changed) {
  std::optional<Timer> second;
  Timer first(loop(), [&] {
    EXPECT_TRUE(second->is_started());
    second->stop();
  });
  second.emplace(loop(), [this] { ++calls; });
  const auto run_both = [&] {
    first.start_at(past);
    second->start_at(past + 1ms);
    loop().run();
  };
  run_both();
  EXPECT_EQ(calls, 0) << "stopped";

  first.set_function([&] { second->start(5ms); });
  const TimePoint before = Clock::now();
  run_both();
  EXPECT_EQ(calls, 1) << "started again";
  EXPECT_GE(Clock::now(), before + 5ms);

  first.set_function([&] { second->set_function([this] { calls += 10; }); });
  run_both();
  EXPECT_EQ(calls, 11) << "given another function";

  first.set_function([&] { second.reset(); });
  run_both();
  EXPECT_EQ(calls, 11) << "destroyed";
}

TEST_P(TimerOperations, a_repeating_timer_that_is_due_can_still_be_changed) {
  Timer repeating(loop(), [&] {
    ++calls;
    repeating.stop();
  });
  Timer first(loop(), [&] { repeating.stop(); });
  repeating.start(0ms, 1ms);
  first.start_at(past);
  loop().run();
  EXPECT_EQ(calls, 0);

  first.set_function([&] { repeating.reset(5ms); });
  const TimePoint before = loop().now();
  repeating.start(0ms, 1h);
  first.start_at(past);
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_GE(loop().now(), before + 5ms);
}

TEST_P(TimerOperations, the_function_inside_the_callback) {
  const auto token = std::make_shared<int>(7);
  Timer timer(loop(), [&, token] {
    timer.set_function([this] { calls += 10; });
    EXPECT_EQ(*token, 7);
    ++calls;
  });
  timer.start(0ms);
  loop().run();
  EXPECT_EQ(token.use_count(), 1);
  timer.start(0ms);
  loop().run();
  EXPECT_EQ(calls, 11);
}

}  // namespace
}  // namespace tambour::timer_operations_test
