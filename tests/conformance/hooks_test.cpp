// Hooks and asyncs: callbacks at fixed points of an iteration, and wakeups from other threads.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::hooks_test {
namespace {

using namespace std::chrono_literals;

class Hooks : public test::OnEveryBackend {
 protected:
  Callback<void()> note(const char* text) {
    return [this, text] { order.emplace_back(text); };
  }

  test::Ends pipe = test::open_pipe();
  std::vector<std::string> order;
};

TAMBOUR_ON_EVERY_BACKEND(Hooks);

TEST_P(Hooks, run_in_their_phases_of_the_iteration) {
  test::write_to(pipe.far);
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) {
    test::drain(pipe.near);
    order.emplace_back("event");
    loop().stop();
  });
  Prepare prepare(loop(), note("prepare"));
  Check check(loop(), note("check"));
  ASSERT_TRUE(watcher.start());
  prepare.start();
  check.start();
  loop().run();
  ASSERT_GE(order.size(), 3U);
  EXPECT_EQ(order.front(), "prepare");
  EXPECT_EQ(order[order.size() - 2], "check");
  EXPECT_EQ(order.back(), "event");
}

TEST_P(Hooks, the_loop_waits_for_a_handle_that_prepare_starts) {
  Timer timer(loop(), note("timer"));
  Prepare prepare(loop(), [&] {
    prepare.stop();
    timer.start(1ms);
  });
  prepare.start();
  loop().run();
  EXPECT_EQ(order, std::vector<std::string>{"timer"});
}

TEST_P(Hooks, the_loop_does_not_wait_if_prepare_stops_it) {
  Timer due(loop(), note("due"));
  Timer later(loop(), [] { FAIL(); });
  Prepare prepare(loop(), [this] { loop().stop(); });
  prepare.start();
  later.start(1h);
  due.start(0ms);
  loop().run();
  EXPECT_EQ(order, std::vector<std::string>{"due"});
  loop().run_once();
  loop().run();
  EXPECT_EQ(order, std::vector<std::string>{"due"});
}

TEST_P(Hooks, the_loop_does_not_wait_if_prepare_stops_the_last_handle) {
  Timer timer(loop(), [] { FAIL(); });
  Prepare prepare(loop(), [&] {
    timer.stop();
    prepare.stop();
  });
  for (const bool once : {false, true}) {
    timer.start(1h);
    prepare.start();
    once ? loop().run_once() : loop().run();
  }
}

TEST_P(Hooks, idle_runs_only_when_nothing_else_is_due) {
  test::write_to(pipe.far, "abc");
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) {
    char byte;
    if (::read(pipe.near.get(), &byte, 1) == 1) order.emplace_back("event");
  });
  ASSERT_TRUE(watcher.start());
  run_iterations(1);  // So that the backend has registered the interest.
  Idle idle(loop(), [this] {
    order.emplace_back("idle");
    loop().stop();
  });
  idle.start();
  loop().run();
  EXPECT_EQ(std::ranges::count(order, "event"), 3);
  EXPECT_EQ(order.back(), "idle");
}

TEST_P(Hooks, an_idle_hook_of_higher_priority_runs_beside_events) {
  test::write_to(pipe.far);
  FdWatcher watcher(loop(), pipe.near.get(), Events::read,
                    [this](Events) { order.emplace_back("event"); });
  ASSERT_TRUE(watcher.start());
  run_iterations();
  order.clear();
  Idle idle(loop(), note("idle"));
  idle.set_priority(1);
  idle.start();
  loop().run_ready();
  EXPECT_EQ(order, (std::vector<std::string>{"idle", "event"}));
}

TEST_P(Hooks, idle_keeps_the_loop_from_waiting) {
  int iterations = 0;
  Idle idle(loop(), [&] {
    if (++iterations == 100) idle.stop();
  });
  idle.start();
  loop().run();
  EXPECT_EQ(iterations, 100);
}

TEST_P(Hooks, cleanup_runs_when_the_loop_is_destroyed_and_does_not_keep_it_running) {
  CleanupHook cleanup(loop(), note("cleanup"));
  cleanup.start();
  loop().run();
  EXPECT_TRUE(order.empty());
  destroy_loop();
  EXPECT_EQ(order, std::vector<std::string>{"cleanup"});
  EXPECT_FALSE(cleanup.is_started());
}

TEST_P(Hooks, fork_hooks_run_after_the_loop_was_reopened) {
  ForkHook hook(loop(), note("fork"));
  hook.start();
  loop().run_ready();
  EXPECT_TRUE(order.empty());
  ASSERT_TRUE(loop().after_fork());
  loop().run_ready();
  EXPECT_EQ(order, std::vector<std::string>{"fork"});
}

TEST_P(Hooks, may_be_stopped_moved_and_destroyed_in_their_own_callbacks) {
  std::optional<Prepare> destroyed;
  const auto alive = std::make_shared<int>();
  destroyed.emplace(loop(), [&, alive] {
    destroyed.reset();
    order.emplace_back("destroyed");
  });
  std::vector<Check> moved;
  moved.emplace_back(loop(), [&] {
    if (moved.size() < 8) moved.emplace_back(loop(), note("new"));
    order.emplace_back("moved");
  });
  destroyed->start();
  moved.front().start();
  run_iterations(2);
  EXPECT_EQ(std::ranges::count(order, "destroyed"), 1);
  EXPECT_EQ(std::ranges::count(order, "moved"), 2);
  EXPECT_EQ(alive.use_count(), 1);
  Check assigned(loop(), note("assigned"));
  assigned.start();
  moved.front() = std::move(assigned);
  order.clear();
  run_iterations(1);
  EXPECT_EQ(order, std::vector<std::string>{"assigned"});
}

TEST_P(Hooks, of_one_phase_run_by_priority_and_a_stopped_hook_does_not_run) {
  Check low(loop(), note("low"));
  Check high(loop(), [&] {
    order.emplace_back("high");
    low.stop();
  });
  Check middle(loop(), note("middle"));
  low.set_priority(-5);
  high.set_priority(5);
  EXPECT_EQ(low.priority(), priority_min);
  EXPECT_EQ(high.priority(), priority_max);
  for (Check* check : {&low, &middle, &high}) check->start();
  loop().run_ready();
  EXPECT_EQ(order, (std::vector<std::string>{"high", "middle"}));
}

TEST_P(Hooks, invoke_the_callback_that_was_set_last) {
  Prepare prepare(loop(), note("first"));
  prepare.set_function([&] {
    order.emplace_back("second");
    // Destroys the closure that is running, which is used afterwards.
    const std::string third = "third";
    prepare.set_function([this, third] { order.push_back(third); });
    order.emplace_back("second again");
  });
  prepare.start();
  run_iterations(2);
  EXPECT_EQ(order, (std::vector<std::string>{"second", "second again", "third"}));
}

TEST_P(Hooks, events_run_by_priority) {
  std::vector<test::Ends> pipes(5);
  std::vector<std::unique_ptr<FdWatcher>> watchers;
  std::vector<int> called;
  for (int i = 0; i < 5; ++i) {
    pipes[i] = test::open_pipe();
    watchers.push_back(std::make_unique<FdWatcher>(loop(), pipes[i].near.get(), Events::read,
                                                   [&, i](Events) { called.push_back(i - 2); }));
    watchers.back()->set_priority(i - 2);
    ASSERT_TRUE(watchers.back()->start());
  }
  run_iterations();
  for (test::Ends& pipe : pipes) test::write_to(pipe.far);
  called.clear();
  ASSERT_TRUE(run_until([&] { return called.size() >= 5; }));
  EXPECT_EQ(std::vector<int>(called.begin(), called.begin() + 5),
            (std::vector<int>{2, 1, 0, -1, -2}));
}

class Asyncs : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Asyncs);

TEST_P(Asyncs, wake_a_waiting_loop) {
  Async async(loop(), [this] { loop().stop(); });
  async.start();
  std::thread other([&] {
    std::this_thread::sleep_for(10ms);
    async.send();
  });
  loop().run();
  other.join();
}

TEST_P(Asyncs, lose_no_send_and_may_be_sent_again_in_the_callback) {
  constexpr int rounds = 2000;
  int seen = 0;
  std::atomic<int> answered{0};
  Async async(loop(), [&] {
    answered.store(++seen);
    if (seen == rounds) loop().stop();
  });
  async.start();
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      async.send();
      while (answered.load() <= i) std::this_thread::yield();
    }
  });
  loop().run();
  other.join();
  EXPECT_EQ(seen, rounds);
}

TEST_P(Asyncs, coalesce_sends_until_the_callback_and_keep_them_while_stopped) {
  int calls = 0;
  Async async(loop(), [&] { ++calls; });
  async.send();
  async.send();
  run_iterations();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(async.is_sent());
  async.start();
  run_iterations();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(async.is_sent());
  async.send();
  async.stop();
  run_iterations();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(async.is_sent());
  async.start();
  run_iterations();
  EXPECT_EQ(calls, 2);
}

TEST_P(Asyncs, stopped_while_due_are_invoked_after_the_next_start) {
  int calls = 0;
  Async async(loop(), [&] { ++calls; });
  Timer stopping(loop(), [&] {
    async.stop();
    EXPECT_TRUE(async.is_sent());
  });
  stopping.set_priority(priority_max);
  stopping.start(0ms);
  async.start();
  async.send();
  EXPECT_TRUE(run_until([&] { return !async.is_started(); }));
  run_iterations();
  EXPECT_EQ(calls, 0);
  async.start();
  run_iterations();
  EXPECT_EQ(calls, 1);
}

Async* rung_by_signal = nullptr;

TEST_P(Asyncs, invoke_the_callback_that_was_set_last) {
  int first = 0;
  int second = 0;
  Async async(loop(), [&first] { ++first; });
  async.start();
  async.send();
  async.set_function([&second] { ++second; });
  run_iterations();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST_P(Asyncs, may_be_sent_from_a_signal_handler) {
  int calls = 0;
  Async async(loop(), [&] { ++calls; });
  async.start();
  rung_by_signal = &async;
  struct sigaction action{};
  struct sigaction former{};
  action.sa_handler = [](int) { rung_by_signal->send(); };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &former), 0);
  for (int i = 1; i <= 10; ++i) {
    ASSERT_EQ(raise(SIGUSR1), 0);
    run_iterations();
    EXPECT_EQ(calls, i);
  }
  ASSERT_EQ(sigaction(SIGUSR1, &former, nullptr), 0);
}

}  // namespace
}  // namespace tambour::hooks_test
