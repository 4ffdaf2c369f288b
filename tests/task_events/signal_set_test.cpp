// SignalSet: signals that tasks await, beside watchers with callbacks; dumps of tasks on a signal.
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::signal_set_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);

class SignalSets : public test::OnEveryBackend {
 public:
  std::vector<int> arrived;
  std::vector<Error> ends;

  Task<> take(SignalSet& signals, int count = 1) {
    for (int i = 0; i < count; ++i) {
      const auto signal = co_await signals.next();
      if (signal) arrived.push_back(*signal);
      ends.push_back(signal ? Error() : signal.error());
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(SignalSets);

TEST_P(SignalSets, a_task_gets_each_of_several_signals) {
  auto signals = SignalSet::open(loop(), {SIGUSR1, SIGUSR2});
  ASSERT_TRUE(signals);
  TaskScope scope(loop());
  scope.spawn(take(*signals, 3));
  for (const int number : {SIGUSR2, SIGUSR1, SIGUSR2}) {
    const std::size_t before = arrived.size();
    ::raise(number);
    ASSERT_TRUE(run_until([&] { return arrived.size() > before; }));
  }
  EXPECT_EQ(arrived, (std::vector<int>{SIGUSR2, SIGUSR1, SIGUSR2}));
}

TEST_P(SignalSets, signals_between_two_calls_are_kept_and_coalesced) {
  auto signals = SignalSet::open(loop(), {SIGUSR1, SIGUSR2});
  ASSERT_TRUE(signals);
  for (int i = 0; i < 3; ++i) {
    ::raise(SIGUSR1);
    run_iterations();
  }
  ::raise(SIGUSR2);
  run_iterations();
  run(take(*signals, 2));
  EXPECT_EQ(arrived, (std::vector<int>{SIGUSR1, SIGUSR2}));
  // Both can arrive again.
  ::raise(SIGUSR2);
  run_iterations();
  run(take(*signals));
  EXPECT_EQ(arrived.back(), SIGUSR2);
}

TEST_P(SignalSets, watchers_and_other_sets_get_the_same_signals) {
  auto first = SignalSet::open(loop(), {SIGUSR1});
  auto second = SignalSet::open(loop(), {SIGUSR1, SIGUSR1});
  int calls = 0;
  Signal watcher(loop(), SIGUSR1, [&](int) { ++calls; });
  ASSERT_TRUE(first && second && watcher.start());
  spawn(loop(), take(*first));
  spawn(loop(), take(*second));
  ::raise(SIGUSR1);
  EXPECT_TRUE(run_until([&] { return arrived.size() == 2 && calls == 1; }));
}

TEST_P(SignalSets, a_stopped_wait_leaves_its_signal) {
  auto signals = SignalSet::open(loop(), {SIGUSR1});
  ASSERT_TRUE(signals);
  TaskScope stopped(loop());
  auto destroyed = std::make_unique<TaskScope>(loop());
  stopped.spawn(take(*signals));
  destroyed->spawn(take(*signals));
  // Stops the tasks in the iteration in which the first one has got the signal.
  Signal::feed(loop(), SIGUSR1);
  loop().post([&] {
    stopped.request_stop();
    destroyed.reset();
  });
  run_iterations();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  run(take(*signals));
  EXPECT_EQ(arrived, std::vector<int>{SIGUSR1});
}

TEST_P(SignalSets, a_time_limit_ends_the_wait) {
  run([](EventLoop& loop) -> Task<> {
    auto signals = SignalSet::open(loop, {SIGUSR1});
    const auto late = co_await timeout(1ms, signals.value().next());
    EXPECT_EQ(late.error(), system_error(ETIMEDOUT));
    ::raise(SIGUSR1);
    const auto first = co_await when_any(sleep_for(1min), signals->next());
    EXPECT_EQ(first.index(), 1U);
  }(loop()));
}

TEST_P(SignalSets, invalid_signals_are_refused) {
  for (const int number : {0, -1, 65, SIGKILL, SIGSTOP}) {
    const auto signals = SignalSet::open(loop(), {SIGUSR1, number});
    EXPECT_EQ(signals.error(), system_error(EINVAL));
  }
  // Nothing is watched any more, so nothing keeps the loop running.
  loop().run();
}

TEST_P(SignalSets, destroying_it_ends_the_waits_and_moving_it_does_not) {
  auto opened = SignalSet::open(loop(), {SIGUSR1});
  ASSERT_TRUE(opened);
  spawn(loop(), take(*opened));
  std::optional<SignalSet> moved(std::move(*opened));
  ::raise(SIGUSR1);
  EXPECT_TRUE(run_until([&] { return arrived.size() == 1; }));
  spawn(loop(), take(*moved));
  moved.reset();
  loop().run();
  EXPECT_EQ(ends, (std::vector<Error>{Error(), cancelled}));
}

TEST_P(SignalSets, may_outlive_the_loop) {
  auto signals = SignalSet::open(loop(), {SIGUSR1});
  ASSERT_TRUE(signals);
  TaskScope scope(loop());
  scope.spawn(take(*signals));
  destroy_loop();
}

/// In a simulation, from the same process.
TEST(SignalSetsInSimulation, signals_are_fed) {
  sim::Simulation simulation(3);
  EventLoop loop(simulation.add_host("host").loop_options());
  std::vector<int> arrived;
  spawn(loop, [&]() -> Task<> {
    auto signals = SignalSet::open(loop, {SIGUSR1, SIGUSR2});
    Signal::feed(SIGUSR2);
    arrived.push_back((co_await signals.value().next()).value());
    Signal::feed(loop, SIGUSR1);
    arrived.push_back((co_await signals->next()).value());
  });
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(arrived, (std::vector<int>{SIGUSR2, SIGUSR1}));
}

// The example task_dump and its test show the whole dump.
TEST(TaskDumpSignal, writes_a_dump_and_does_not_keep_the_loop_running) {
  EventLoop loop;
  auto first = or_throw(dump_tasks_on(loop, SIGQUIT));
  TaskDumpSignal dumps = std::move(first);
  loop.run();  // Returns: nothing else is left to wait for.
  TaskEvent event(loop);
  TaskScope scope(loop);
  auto wait = [&]() -> Task<> { static_cast<void>(co_await event.wait()); };
  scope.spawn(wait());
  testing::internal::CaptureStderr();
  ::raise(SIGQUIT);
  Timer later(loop, [&] { event.set(); });
  later.start(10ms);
  loop.run();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("\ntask 0x"), std::string::npos) << text;
  EXPECT_FALSE(dump_tasks_on(loop, SIGKILL));
  dumps = or_throw(dump_tasks_on(loop, SIGUSR1));
  std::optional<EventLoop> other(std::in_place);
  dumps = or_throw(dump_tasks_on(*other, SIGUSR1));
  other.reset();  // Before the handle.
}

}  // namespace
}  // namespace tambour::signal_set_test
