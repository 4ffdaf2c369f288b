// sleep_until() with a time of the wall clock.
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::wall_sleep_test {
namespace {

using namespace std::chrono_literals;

class WallSleeps : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(WallSleeps);

TEST_P(WallSleeps, wait_for_the_time) {
  run([](EventLoop& loop) -> Task<> {
    // The wall clock is that of the loop: it may be a simulated one.
    EXPECT_TRUE(co_await sleep_until(WallTime()));
    const bool is_real = loop.backend().kind != BackendKind::simulated;
    const WallTime time = WallTime::clock::now() + 5ms;
    if (!is_real) co_return;
    EXPECT_TRUE(co_await sleep_until(time));
    EXPECT_GE(WallTime::clock::now(), time);
  }(loop()));
}

TEST_P(WallSleeps, can_be_stopped) {
  run([](EventLoop& loop) -> Task<> {
    const auto late = co_await timeout(1ms, sleep_until(WallTime::max()));
    EXPECT_EQ(late.error(), system_error(ETIMEDOUT));
    TaskScope scope(loop);
    Result<> ended;
    scope.spawn([&]() -> Task<> { ended = co_await sleep_until(WallTime::max()); });
    scope.request_stop();
    EXPECT_TRUE(ended);
    co_await scope.join();
    EXPECT_EQ(ended.error(), system_error(ECANCELED));
    // Before the wait.
    scope.spawn([&]() -> Task<> { ended = co_await sleep_until(WallTime::max()); });
    co_await scope.join();
    EXPECT_EQ(ended.error(), system_error(ECANCELED));
  }(loop()));
}

TEST_P(WallSleeps, may_be_destroyed) {
  TaskScope scope(loop());
  {
    TaskScope inner(loop());
    inner.spawn([]() -> Task<> { co_await sleep_until(WallTime::max()); });
  }
  loop().run();
  scope.spawn([]() -> Task<> { co_await sleep_until(WallTime::max()); });
  destroy_loop();
  scope.request_stop();
}

TEST(WallSleepsInSimulation, a_jump_of_the_clock_takes_effect_at_once) {
  sim::Simulation simulation(1);
  EventLoop loop(simulation.add_host("host").loop_options());
  const WallTime start = simulation.wall_now();
  std::vector<WallTime> woken;
  TimePoint end;
  spawn(loop, [&]() -> Task<> {
    const TimePoint began = loop.now();
    EXPECT_TRUE(co_await sleep_until(start + 10min));
    woken.push_back(simulation.wall_now());
    EXPECT_LT(loop.now() - began, 2min);
    EXPECT_TRUE(co_await sleep_until(start + 48h));
    woken.push_back(simulation.wall_now());
    end = loop.now();
  });
  // Ten hours forward, then back.
  EXPECT_EQ(simulation.run_for(1min), sim::End::timeout);
  simulation.set_wall_clock(start + 10h);
  EXPECT_EQ(simulation.run_for(1min), sim::End::timeout);
  ASSERT_EQ(woken.size(), 1U);
  EXPECT_GE(woken[0], start + 10h);
  simulation.set_wall_clock(start);
  const TimePoint set_back = loop.now();
  EXPECT_EQ(simulation.run(), sim::End::finished);
  ASSERT_EQ(woken.size(), 2U);
  EXPECT_GE(woken[1], start + 48h);
  EXPECT_GE(end - set_back, 47h);
}

}  // namespace
}  // namespace tambour::wall_sleep_test
