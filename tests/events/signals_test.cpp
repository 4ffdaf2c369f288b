// Signal watchers: which are invoked, on which thread, and the dispositions of the process.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/heartbeat.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::signals_test {
namespace {

class Signals : public test::OnEveryBackend {
 protected:
  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(Signals);

TEST_P(Signals, all_watchers_of_a_signal_are_invoked_and_no_others) {
  std::vector<int> seen;
  Signal first(loop(), SIGUSR1, [&seen](int number) { seen.push_back(number); });
  Signal second(loop(), SIGUSR1, [&seen](int number) { seen.push_back(number); });
  Signal other(loop(), SIGUSR2, [&seen](int number) { seen.push_back(number); });
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(second.start());
  ASSERT_TRUE(other.start());
  EXPECT_EQ(first.number(), SIGUSR1);
  ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR1}));
  ::raise(SIGUSR2);
  run_iterations();
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR1, SIGUSR2}));
}

TEST_P(Signals, the_first_and_the_last_signal_number_can_be_watched) {
  for (const int number : {SIGHUP, SIGRTMIN, SIGRTMAX}) {
    Signal signal(loop(), number, [this](int) { ++calls; });
    ASSERT_TRUE(signal.start());
    calls = 0;
    ::raise(number);
    run_iterations();
    EXPECT_EQ(calls, 1);
  }
}

TEST_P(Signals, start_fails_for_a_signal_that_cannot_be_caught) {
  for (const int number : {-1, 0, 32, 65, 1000, SIGKILL, SIGSTOP}) {
    Signal signal(loop(), number, [this](int) { ++calls; });
    const auto started = signal.start();
    ASSERT_FALSE(started) << number;
    EXPECT_EQ(started.error(), system_error(EINVAL)) << number;
    EXPECT_FALSE(signal.is_started());
  }
  loop().run();  // No watcher keeps run() from returning.
  EXPECT_EQ(calls, 0);
}

TEST_P(Signals, signals_of_a_burst_are_coalesced_into_one_call) {
  Signal signal(loop(), SIGUSR1, [this](int) { ++calls; });
  ASSERT_TRUE(signal.start());
  for (int i = 0; i < 100; ++i) ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(calls, 1);
  ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(calls, 2);
}

TEST_P(Signals, a_signal_ends_the_wait) {
  Signal signal(loop(), SIGUSR1, [this](int) { loop().stop(); });
  ASSERT_TRUE(signal.start());
  const test::Heartbeat heartbeat(loop());
  std::jthread sender([] { ::kill(::getpid(), SIGUSR1); });
  loop().run();
  SUCCEED();
}

TEST_P(Signals, no_signal_is_lost_at_any_rate) {
  std::atomic<std::size_t> sent{0};
  std::size_t seen = 0;
  const std::size_t count = test::scaled(20'000);
  Signal signal(loop(), SIGUSR1, [&](int) { seen = sent.load(); });
  ASSERT_TRUE(signal.start());
  const test::Heartbeat heartbeat(loop());
  std::jthread sender([&] {
    for (std::size_t i = 0; i < count; ++i) {
      ++sent;
      ::kill(::getpid(), SIGUSR1);
    }
  });
  EXPECT_TRUE(run_until([&] { return seen == count; }));
}

TEST_P(Signals, loops_in_several_threads_each_receive_the_signal) {
  constexpr int threads = 4;
  std::atomic<int> ready{0};
  std::atomic<int> invoked{0};
  std::vector<std::jthread> runners;
  for (int i = 0; i < threads; ++i) {
    runners.emplace_back([&] {
      EventLoop loop(options());
      const test::Heartbeat heartbeat(loop);
      const auto self = std::this_thread::get_id();
      std::vector<Signal> signals;
      int left = 2;
      for (int watcher = 0; watcher < 2; ++watcher) {
        signals.emplace_back(loop, SIGUSR2, [&](int) {
          if (std::this_thread::get_id() == self) ++invoked;
          if (--left == 0) loop.stop();
        });
      }
      for (Signal& signal : signals) ASSERT_TRUE(signal.start());
      ++ready;
      loop.run();
    });
  }
  while (ready < threads) std::this_thread::yield();
  ::kill(::getpid(), SIGUSR2);
  runners.clear();
  EXPECT_EQ(invoked, 2 * threads);
}

TEST_P(Signals, feed_reaches_all_loops_or_the_given_loop) {
  EventLoop other(options());
  int others = 0;
  Signal here(loop(), SIGUSR1, [this](int) { ++calls; });
  Signal there(other, SIGUSR1, [&others](int) { ++others; });
  ASSERT_TRUE(here.start());
  ASSERT_TRUE(there.start());
  Signal::feed(SIGUSR1);
  run_iterations();
  for (int iteration = 0; iteration < 3; ++iteration) other.run_ready();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(others, 1);
  Signal::feed(loop(), SIGUSR1);
  run_iterations();
  other.run_ready();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(others, 1);
  for (const int number : {-1, 0, SIGUSR2, 65}) {
    Signal::feed(number);
    Signal::feed(loop(), number);
  }
  run_iterations();
  EXPECT_EQ(calls, 2);
}

TEST_P(Signals, a_signal_fed_in_a_callback_is_handled_in_the_next_iteration) {
  Signal signal(loop(), SIGUSR1, [this](int) {
    ++calls;
    Signal::feed(loop(), SIGUSR1);
  });
  ASSERT_TRUE(signal.start());
  Signal::feed(loop(), SIGUSR1);
  for (int iteration = 1; iteration <= 4; ++iteration) {
    run_iterations(1);
    EXPECT_EQ(calls, iteration);
  }
}

TEST_P(Signals, a_stopped_handle_is_not_invoked) {
  Signal first(loop(), SIGUSR1, [this](int) { ++calls; });
  Signal second(loop(), SIGUSR1, [&](int) {
    ++calls;
    first.stop();
  });
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(second.start());  // Invoked first.
  ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(calls, 1);
  // A signal raised before start() is not reported to the watcher.
  second.stop();
  Signal keep(loop(), SIGUSR1, [](int) {});
  ASSERT_TRUE(keep.start());
  ::raise(SIGUSR1);
  keep.stop();
  ASSERT_TRUE(first.start());
  run_iterations();
  EXPECT_EQ(calls, 1);
}

TEST_P(Signals, a_child_that_destroys_the_loop_takes_no_signal_from_its_parent) {
  Signal signal(loop(), SIGUSR1, [this](int) { ++calls; });
  ASSERT_TRUE(signal.start());
  run_iterations();
  ::raise(SIGUSR1);
  EXPECT_EQ(test::in_child([this] {
              destroy_loop();  // Without reopening it.
              return 0;
            }),
            0);
  run_iterations();
  EXPECT_EQ(calls, 1);
  ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(calls, 2);
}

TEST_P(Signals, handles_of_higher_priority_are_invoked_first) {
  std::vector<int> order;
  const auto pipe = test::open_pipe();
  FdWatcher reader(loop(), pipe.near.get(), Events::read, [&](Events) {
    order.push_back(0);
    test::drain(pipe.near);
  });
  ASSERT_TRUE(reader.start());
  std::vector<Signal> signals;
  for (const int priority : {-2, 1, -1, 2}) {
    signals.emplace_back(loop(), SIGUSR1, [&order, priority](int) { order.push_back(priority); });
    signals.back().set_priority(priority);
    ASSERT_TRUE(signals.back().start());
  }
  run_iterations();
  test::write_to(pipe.far);
  ::raise(SIGUSR1);
  // A small ring delivers the events one at a time.
  EXPECT_TRUE(run_until([&] { return order.size() == 5; }));
  if (GetParam().name == "io_uring_small") return;
  EXPECT_EQ(order, (std::vector<int>{2, 1, 0, -1, -2}));
}

TEST_P(Signals, a_handle_may_be_moved_and_destroyed_anywhere) {
  std::optional<Signal> signal;
  const auto weight = std::make_shared<int>(7);
  signal.emplace(loop(), SIGUSR1, [&, weight](int) {
    ++calls;
    signal.reset();
    EXPECT_EQ(*weight, 7);
  });
  ASSERT_TRUE(signal->start());
  Signal elsewhere(std::move(*signal));
  signal.reset();
  EXPECT_TRUE(elsewhere.is_started());
  signal.emplace(std::move(elsewhere));
  ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(weight.use_count(), 1);
  EXPECT_FALSE(signal);
}

TEST_P(Signals, a_started_handle_keeps_the_loop_running_unless_unreferenced) {
  Signal signal(loop(), SIGUSR1, [this](int) { ++calls; });
  ASSERT_TRUE(signal.start());
  ASSERT_TRUE(signal.start());
  EXPECT_EQ(loop().stats().references, 1);
  loop().unref();
  loop().run();
  loop().ref();
  signal.stop();
  EXPECT_EQ(loop().stats().references, 0);
  loop().run();
}

}  // namespace
}  // namespace tambour::signals_test
