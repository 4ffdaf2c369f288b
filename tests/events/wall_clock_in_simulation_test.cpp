// The wall clock of a simulation: hours and years pass instantly, and wall-clock timers follow it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::wall_clock_in_simulation_test {
namespace {

using namespace std::chrono_literals;

class InSimulation : public testing::Test {
 protected:
  sim::Simulation simulation;
  EventLoop loop{simulation.add_host("clock").loop_options()};
  int calls = 0;
};

TEST_F(InSimulation, a_year_of_days_passes_at_once) {
  std::vector<WallTime> days;
  WallTimer midnight(loop, [&] {
    days.push_back(std::chrono::floor<std::chrono::hours>(simulation.wall_now()));
    if (days.size() == 365) midnight.stop();
  });
  ASSERT_TRUE(midnight.start_every(24h));
  simulation.run();
  ASSERT_EQ(days.size(), 365U);
  for (std::size_t i = 0; i < days.size(); ++i) {
    EXPECT_EQ(days[i].time_since_epoch() % 24h, 0ns);
    EXPECT_EQ(days[i] - days[0], i * 24h);
  }
}

TEST_F(InSimulation, timers_are_on_time_when_the_clock_is_set) {
  for (const Duration leap :
       {Duration(1h), Duration(-1h), Duration(24h * 365 * 10), Duration(-24h * 365 * 10)}) {
    SCOPED_TRACE(leap.count());
    const TimePoint began = simulation.now();
    const WallTime clock_said = simulation.wall_now();
    WallTime called;
    bool monotonic_on_time = false;
    Timer monotonic(loop, [&] { monotonic_on_time = simulation.now() - began < 2h + 1s; });
    monotonic.start(2h);
    WallTimer timer(loop, [&] { called = simulation.wall_now(); });
    const WallTime due = clock_said + leap + 3h;
    ASSERT_TRUE(timer.start_at(due));
    WallTimer half_hours(loop, [&] {
      ++calls;
      EXPECT_LT(simulation.wall_now().time_since_epoch() % 30min, 1s);
    });
    simulation.after(1min, [&] {
      calls = 0;
      simulation.set_wall_clock(simulation.wall_now() + leap);
      // Started after the jump, so that each expiry is on the half-hour.
      ASSERT_TRUE(half_hours.start_every(30min));
    });
    simulation.after(4h, [&] { half_hours.stop(); });
    simulation.run();
    EXPECT_TRUE(monotonic_on_time);
    // If the clock is set back by years, the time was already past when the timer was started.
    const WallTime expected = std::max(due, clock_said);
    EXPECT_GE(called, expected);
    EXPECT_LT(called - expected, 1s);
    EXPECT_GE(calls, 7);
    EXPECT_LE(calls, 8);
  }
}

TEST_F(InSimulation, the_minimum_time_point_is_due_at_once) {
  WallTimer timer(loop, [&] { ++calls; });
  ASSERT_TRUE(timer.start_at(WallTime::min()));
  EXPECT_EQ(simulation.run(1h), sim::End::finished);
  EXPECT_EQ(calls, 1);
  ASSERT_TRUE(timer.start_at(WallTime::max()));
  EXPECT_EQ(simulation.run(1h), sim::End::stalled);
  EXPECT_EQ(calls, 1);
}

TEST_F(InSimulation, a_jump_over_several_intervals_invokes_the_callback_once) {
  WallTimer hourly(loop, [&] { ++calls; });
  ASSERT_TRUE(hourly.start_every(1h));
  simulation.after(1s, [&] { simulation.set_wall_clock(simulation.wall_now() + 100h); });
  simulation.after(2s, [&] { hourly.stop(); });
  simulation.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(InSimulation, times_are_recomputed_when_the_clock_is_set) {
  std::vector<WallTime> asked_at;
  WallTimer timer(loop, [&] { ++calls; });
  ASSERT_TRUE(timer.start_by([&](WallTime now) {
    asked_at.push_back(now);
    return now + 24h;
  }));
  const WallTime began = simulation.wall_now();
  simulation.after(1s, [&] { simulation.set_wall_clock(began - 1h); });
  simulation.after(2s, [&] { simulation.set_wall_clock(began); });
  simulation.after(23h, [&] { timer.stop(); });
  simulation.run();
  ASSERT_EQ(asked_at.size(), 3U);
  EXPECT_LT(asked_at[1], began);
  EXPECT_EQ(calls, 0);
}

TEST_F(InSimulation, signals_can_be_fed) {
  Signal signal(loop, SIGTERM, [&](int number) {
    EXPECT_EQ(number, SIGTERM);
    if (++calls == 3) signal.stop();
  });
  ASSERT_TRUE(signal.start());
  simulation.after(1s, [&] { Signal::feed(loop, SIGTERM); });
  simulation.after(2s, [] { Signal::feed(SIGTERM); });
  simulation.after(3s, [&] { Signal::feed(loop, SIGTERM); });
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace tambour::wall_clock_in_simulation_test
