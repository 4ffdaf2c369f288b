// Channels, mutexes, time limits and calls on other loops, in simulations.
#include <chrono>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/scale.h"

namespace tambour::task_objects_test {
namespace {

using namespace std::chrono_literals;

Task<> produce(sim::Simulation& simulation, TaskChannel<int>& to, int first, int items) {
  for (int i = first; i < first + items; ++i) {
    co_await sleep_for(simulation.random(5) * 1ms);
    // A send that was stopped is repeated.
    while (!co_await timeout(simulation.random(10) * 1ms, to.send(i))) {
    }
  }
}

struct Counts {
  std::vector<int> received = std::vector<int>(60);
  int total = 0;
};

/// Counts the items. `total` is read, and written after a call on the loop `far`.
Task<> consume(sim::Simulation& simulation, TaskChannel<int>& from, TaskMutex& mutex,
               EventLoop& far, Counts& counts) {
  for (;;) {
    const auto item = co_await timeout(simulation.random(10) * 1ms, from.receive());
    if (!item && item.error() == system_error(EPIPE)) co_return;
    if (!item) continue;
    ++counts.received.at(std::size_t(*item));
    const auto guard = co_await mutex.lock();
    if (!guard) simulation.fail("not locked");
    auto add = [](int before, Duration time) -> Task<int> {
      co_await sleep_for(time);
      co_return before + 1;
    };
    const auto sum = co_await run_on(far, add, counts.total, Duration(simulation.random(3) * 1ms));
    if (!sum) simulation.fail("not called: " + sum.error().message());
    counts.total = sum.value_or(0);
  }
}

void scenario(sim::Simulation& simulation) {
  EventLoop near(simulation.add_host("near").loop_options());
  EventLoop far(simulation.add_host("far").loop_options());
  TaskChannel<int> channel(near, simulation.random(3));
  TaskMutex mutex(near);
  Counts counts;
  TaskScope consumers(near);
  TaskScope producers(near);
  for (int i = 0; i < 3; ++i) {
    consumers.spawn(consume(simulation, channel, mutex, far, counts));
    producers.spawn(produce(simulation, channel, 20 * i, 20));
  }
  spawn(near, [&]() -> Task<> {
    co_await producers.join();
    channel.close();
    co_await consumers.join();
  });
  simulation.run();
  if (!consumers.empty()) simulation.fail("the consumers have not ended");
  if (counts.received != std::vector<int>(60, 1) || counts.total != 60)
    simulation.fail("an item was lost or repeated");
}

TEST(SimulatedTaskObjects, no_item_is_lost_or_repeated) {
  const auto failure = sim::simulate({.count = test::scaled(300)}, scenario);
  EXPECT_FALSE(failure) << failure->report();
}

TEST(SimulatedTaskObjects, a_time_limit_stops_a_task_on_another_loop) {
  sim::Simulation simulation(1);
  EventLoop near(simulation.add_host("near").loop_options());
  EventLoop far(simulation.add_host("far").loop_options());
  Error end;
  spawn(near, [&]() -> Task<> {
    auto sleep = []() -> Task<Result<>> { co_return co_await sleep_for(24h); };
    end = (co_await timeout(1h, run_on(far, sleep))).error();
  });
  simulation.run();
  EXPECT_EQ(end, system_error(ETIMEDOUT));
}

}  // namespace
}  // namespace tambour::task_objects_test
