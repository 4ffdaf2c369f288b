// Channels, mutexes, time limits, calls on other loops, handles of tasks and callbacks, in
// simulations.
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
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

/// A callback API on another loop: adds one to a number after a random time, or forgets the
/// callback.
class Adder {
 public:
  Adder(sim::Simulation& simulation, EventLoop& loop)
      : simulation_(simulation), loop_(loop), scope_(loop) {}

  void add_one(int number, Completion<int> done) {
    ++started_;
    loop_.post([this, number, done = std::move(done)]() mutable {
      scope_.spawn(answer(simulation_.random(20) * 1ms, number, std::move(done)));
    });
  }

  int started() const { return started_; }
  int answered() const { return answered_; }
  int refused() const { return refused_; }
  int forgotten() const { return forgotten_; }

 private:
  Task<> answer(Duration delay, int number, Completion<int> done) {
    co_await sleep_for(delay);
    if (simulation_.random(10) == 0) {
      ++forgotten_;
      co_return;
    }
    ++(done.complete(number + 1) ? answered_ : refused_);
  }

  sim::Simulation& simulation_;
  EventLoop& loop_;
  TaskScope scope_;
  int started_ = 0;
  int answered_ = 0;
  int refused_ = 0;  ///< The wait had ended.
  int forgotten_ = 0;
};

struct JoinCounts {
  int results = 0;
  int cancelled = 0;
};

/// Spawns a task that waits for the adder. Joins it, with time limits that may expire, or cancels
/// it, at a random time.
Task<> join_one(sim::Simulation& simulation, TaskScope& scope, Adder& adder, int number,
                JoinCounts& counts) {
  const auto wait = [](Adder& to, int sent) -> Task<Result<int>> {
    auto start = [&to, sent](Completion<int> done) { to.add_one(sent, std::move(done)); };
    co_return co_await from_callback<int>(start);
  };
  JoinHandle<Result<int>> handle = scope.spawn(wait, std::ref(adder), number);
  bool was_cancelled = false;
  for (;;) {
    const Result<int> sum = co_await timeout(simulation.random(10) * 1ms, handle.join());
    if (!sum && sum.error() == system_error(ETIMEDOUT)) {
      // The result is not lost: the next join() returns it.
      if (simulation.random(4) != 0) continue;
      was_cancelled = !handle.has_ended();
      handle.cancel();
      continue;
    }
    if (sum && *sum != number + 1) simulation.fail("the result of another task");
    if (sum && was_cancelled) simulation.fail("a cancelled task returned a result");
    // Cancelled, or forgotten by the adder.
    if (!sum && sum.error() != system_error(ECANCELED)) simulation.fail(sum.error().message());
    ++(sum ? counts.results : counts.cancelled);
    co_return;
  }
}

void joins(sim::Simulation& simulation) {
  EventLoop near(simulation.add_host("near").loop_options());
  EventLoop far(simulation.add_host("far").loop_options());
  Adder adder(simulation, far);
  TaskScope scope(near);
  JoinCounts counts;
  constexpr int tasks = 30;
  spawn(near, [&]() -> Task<> {
    TaskScope joining(near);
    for (int i = 0; i < tasks; ++i) {
      joining.spawn(join_one(simulation, scope, adder, i, counts));
      co_await sleep_for(simulation.random(5) * 1ms);
    }
    co_await joining.join();
  });
  simulation.run();
  if (!scope.empty()) simulation.fail("a task has not ended");
  if (counts.results + counts.cancelled != tasks) simulation.fail("a join() has not returned");
  if (adder.started() != adder.answered() + adder.refused() + adder.forgotten())
    simulation.fail("an operation of the adder has not ended");
  if (counts.results == 0 || counts.cancelled == 0) simulation.fail("nothing was tested");
  // A task may be cancelled between its completion and its resumption.
  if (counts.results > adder.answered()) simulation.fail("a result that was not sent");
  if (counts.cancelled < adder.refused()) simulation.fail("an answer was refused without reason");
}

TEST(SimulatedTaskObjects, handles_of_tasks_that_wait_for_callbacks_lose_no_result) {
  const auto failure = sim::simulate({.count = test::scaled(300)}, joins);
  EXPECT_FALSE(failure) << failure->report();
}

TEST(SimulatedTaskObjects, a_stop_handler_ends_an_operation_on_another_loop) {
  sim::Simulation simulation(1);
  EventLoop near(simulation.add_host("near").loop_options());
  EventLoop far(simulation.add_host("far").loop_options());
  Error end;
  Duration ended_after{};
  spawn(near, [&]() -> Task<> {
    // The operation ends on the other loop, an hour after it was asked to.
    std::optional<Completion<int>> kept;
    auto start = [&](const Completion<int>& done) {
      kept = done;
      done.on_stop([&far](const Completion<int>& stopped) {
        far.post([&far, stopped] {
          spawn(far, [](Completion<int> to) -> Task<> {
            co_await sleep_for(1h);
            to.fail(system_error(EINTR));
          }(stopped));
        });
      });
    };
    const TimePoint before = near.now();
    end = (co_await timeout(24h, from_callback<int>(start))).error();
    ended_after = near.now() - before;
  });
  simulation.run();
  EXPECT_EQ(end, system_error(ETIMEDOUT));
  EXPECT_GE(ended_after, 25h);
  EXPECT_LT(ended_after, 26h);
}

}  // namespace
}  // namespace tambour::task_objects_test
