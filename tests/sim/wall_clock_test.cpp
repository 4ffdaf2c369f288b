// The wall clock is set by an hour and by ten years, forwards and backwards: wall-clock timers are
// on time, and other timers are not affected.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::wall_clock_test {
namespace {

using namespace std::chrono_literals;

struct Jump {
  const char* name;
  Duration by;
};

class WallClockJumps : public testing::TestWithParam<Jump> {
 protected:
  /// The jump happens half a second after the start.
  void run() {
    simulation.after(500ms,
                     [this] { simulation.set_wall_clock(simulation.wall_now() + GetParam().by); });
    EXPECT_EQ(simulation.run(std::chrono::years(20)), sim::End::finished);
  }

  sim::Simulation simulation;
  EventLoop loop{simulation.add_host("host").loop_options()};
  const TimePoint began = simulation.now();
  const std::chrono::sys_time<Duration> wall_began = simulation.wall_now();
};

INSTANTIATE_TEST_SUITE_P(By, WallClockJumps,
                         testing::Values(Jump{"an_hour", 1h}, Jump{"minus_an_hour", -1h},
                                         Jump{"ten_years", std::chrono::years(10)},
                                         Jump{"minus_ten_years", -std::chrono::years(10)}),
                         [](const auto& jump) { return std::string(jump.param.name); });

TEST_P(WallClockJumps, a_timer_is_not_affected) {
  TimePoint expired = never;
  Timer timer(loop, [&] { expired = simulation.now(); });
  timer.start(2h);
  run();
  EXPECT_GE(expired - began, 2h);
  EXPECT_LT(expired - began, 2h + 1ms);
}

TEST_P(WallClockJumps, a_wall_timer_is_on_time) {
  const auto time = wall_began + 2h;
  std::chrono::sys_time<Duration> expired;
  WallTimer timer(loop, [&] { expired = simulation.wall_now(); });
  ASSERT_TRUE(timer.start_at(time));
  run();
  EXPECT_GE(expired, time);
  if (GetParam().by < 2h) {
    EXPECT_LT(expired, time + 1ms);
    EXPECT_GE(simulation.now() - began, 2h - GetParam().by);
  } else {
    // The clock has jumped past the deadline, so the timer expires immediately.
    EXPECT_LT(simulation.now() - began, 500ms + 1ms);
  }
}

}  // namespace
}  // namespace tambour::wall_clock_test
