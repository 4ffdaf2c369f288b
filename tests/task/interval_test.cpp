// Interval and sleep_until(): times, missed ticks, cancellation and destruction.
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::interval_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);

class Intervals : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Intervals);

TEST_P(Intervals, sleep_until_waits_for_the_time) {
  run([](EventLoop& loop) -> Task<> {
    loop.update_now();
    const TimePoint time = loop.now() + 3ms;
    EXPECT_TRUE(co_await sleep_until(time));
    EXPECT_GE(loop.now(), time);
    // The time has passed.
    EXPECT_TRUE(co_await sleep_until(time));
    EXPECT_TRUE(co_await sleep_until(TimePoint::min()));
    const auto limited = co_await timeout(1ms, sleep_until(never));
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
  }(loop()));
}

TEST_P(Intervals, ticks_are_multiples_of_the_period) {
  run([](EventLoop& loop) -> Task<> {
    for (const MissedTicks missed : {MissedTicks::burst, MissedTicks::delay, MissedTicks::skip}) {
      Interval interval(loop, 1ms, missed);
      EXPECT_EQ(interval.period(), Duration(1ms));
      const TimePoint first = interval.next();
      for (int i = 0; i < 5; ++i) {
        const TimePoint expected = interval.next();
        const auto tick = co_await interval.tick();
        EXPECT_EQ(tick.value(), expected);
        EXPECT_GE(loop.now(), expected);
        EXPECT_GT(interval.next(), expected);
        if (missed == MissedTicks::burst) {
          EXPECT_EQ(expected, first + i * 1ms);
        }
        if (missed == MissedTicks::skip) {
          EXPECT_EQ((expected - first) % 1ms, 0ns);
        }
      }
    }
  }(loop()));
}

TEST_P(Intervals, a_stopped_tick_is_not_consumed) {
  run([](EventLoop& loop) -> Task<> {
    Interval interval(loop, 1h);
    const TimePoint next = interval.next();
    const auto limited = co_await timeout(1ms, interval.tick());
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(interval.next(), next);
    // After reset_at(), at once.
    interval.reset_at(loop.now() - 30min);
    EXPECT_EQ((co_await interval.tick()).value(), interval.next() - 1h);
    EXPECT_EQ(interval.skipped(), 0U);
    interval.reset();
    EXPECT_GE(interval.next(), loop.now() + 1h);
  }(loop()));
}

TEST_P(Intervals, destroying_it_ends_the_wait) {
  auto interval = std::make_unique<Interval>(loop(), 1h);
  std::vector<Error> ends;
  spawn(loop(), [&]() -> Task<> { ends.push_back((co_await interval->tick()).error()); });
  run_iterations();
  interval.reset();
  EXPECT_TRUE(ends.empty());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  // timeout() moves the awaitable, and destroys what is left of it afterwards.
  interval = std::make_unique<Interval>(loop(), 1h);
  spawn(loop(),
        [&]() -> Task<> { ends.push_back((co_await timeout(1h, interval->tick())).error()); });
  run_iterations();
  interval.reset();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(2, cancelled));
}

TEST_P(Intervals, a_destroyed_task_leaves_it) {
  Interval interval(loop(), 1ms);
  {
    TaskScope scope(loop());
    scope.spawn([&]() -> Task<> { co_await interval.tick(); });
  }
  run([](Interval& ticks) -> Task<> { EXPECT_TRUE(co_await ticks.tick()); }(interval));
}

TEST_P(Intervals, may_outlive_the_loop) {
  Interval interval(loop(), 1ms);
  TaskScope scope(loop());
  scope.spawn([&]() -> Task<> { co_await interval.tick(); });
  destroy_loop();
}

TEST_P(Intervals, one_task_waits) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Interval interval(loop(), 1h);
  TaskScope scope(loop());
  const auto wait = [&]() -> Task<> { co_await interval.tick(); };
  scope.spawn(wait());
  EXPECT_DEATH(scope.spawn(wait()), "Interval .created in .*interval_test.cpp.* used while a task");
  EXPECT_DEATH(Interval(loop(), 0ms), "got a period of 0 ns");
}

/// In a simulation, where times are exact.
class MissedTicksOfIntervals : public testing::Test {
 public:
  static sim::Options options() {
    sim::Options options;
    options.iteration_time = 1ns;
    options.trace = false;
    return options;
  }

  /// The times, in ms after the construction, at which ticks are returned, if the task sleeps for
  /// `works` after each of them.
  std::vector<std::int64_t> times(MissedTicks missed, const std::vector<Duration>& works) {
    std::vector<std::int64_t> found;
    spawn(loop, [&, missed]() -> Task<> {
      loop.update_now();
      const TimePoint start = loop.now();
      Interval interval(loop, 10ms, missed);
      for (const Duration work : works) {
        EXPECT_TRUE(co_await interval.tick());
        found.push_back((loop.now() - start) / 1ms);
        if (work > 0ms) co_await sleep_for(work);
      }
      skipped = interval.skipped();
    });
    EXPECT_EQ(simulation.run(24h * 365 * 60), sim::End::finished);
    return found;
  }

  sim::Simulation simulation{1, options()};
  sim::Host& host = simulation.add_host("host");
  EventLoop loop{host.loop_options()};
  std::uint64_t skipped = 0;
};

using Times = std::vector<std::int64_t>;

TEST_F(MissedTicksOfIntervals, burst_returns_them_all) {
  EXPECT_EQ(times(MissedTicks::burst, {0ms, 35ms, 0ms, 0ms, 0ms, 0ms}),
            (Times{10, 20, 55, 55, 55, 60}));
  EXPECT_EQ(skipped, 0U);
}

TEST_F(MissedTicksOfIntervals, delay_moves_the_following_ones) {
  EXPECT_EQ(times(MissedTicks::delay, {0ms, 35ms, 0ms, 0ms, 0ms}), (Times{10, 20, 55, 65, 75}));
  // A tick that is at most 5 ms late moves none.
  EXPECT_EQ(times(MissedTicks::delay, {14ms, 0ms, 0ms}), (Times{10, 24, 30}));
}

TEST_F(MissedTicksOfIntervals, skip_leaves_them_out) {
  EXPECT_EQ(times(MissedTicks::skip, {0ms, 35ms, 0ms, 0ms, 0ms}), (Times{10, 20, 55, 60, 70}));
  EXPECT_EQ(skipped, 2U);
  EXPECT_EQ(times(MissedTicks::skip, {0ms, 0ms}), (Times{10, 20}));
}

TEST_F(MissedTicksOfIntervals, a_pause_of_years_is_no_problem) {
  const Duration years = 24h * 365 * 50;
  EXPECT_EQ(times(MissedTicks::skip, {years, 0ms, 0ms}).size(), 3U);
  EXPECT_EQ(skipped, std::uint64_t(years / 10ms - 1));
  EXPECT_EQ(times(MissedTicks::delay, {years, 0ms, 0ms}).size(), 3U);
  EXPECT_EQ(times(MissedTicks::burst, {years, 0ms, 0ms}).size(), 3U);
}

TEST_F(MissedTicksOfIntervals, a_period_beyond_the_range_of_the_clock_never_ticks) {
  spawn(loop, [this]() -> Task<> {
    Interval interval(loop, Duration::max());
    EXPECT_EQ(interval.next(), never);
    const auto limited = co_await timeout(1h, interval.tick());
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
  });
  EXPECT_EQ(simulation.run(24h * 365 * 60), sim::End::finished);
}

}  // namespace
}  // namespace tambour::interval_test
