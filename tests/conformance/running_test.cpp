// run(), run_once() and run_ready(): when they return, how long they wait, and what is left for the
// next iteration.
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::running_test {
namespace {

using namespace std::chrono_literals;

class Running : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(Running);

TEST_P(Running, returns_at_once_if_no_handle_is_started) {
  loop().run();
  loop().run_once();
  loop().run_ready();
  Timer timer(loop(), [this] { ++calls; });
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  loop().run();
  EXPECT_EQ(calls, 0);
}

TEST_P(Running, continues_until_the_last_watcher_has_stopped) {
  test::write_to(pipe.far, "abc");
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) {
    if (++calls == 5) watcher.stop();
  });
  ASSERT_TRUE(watcher.start());
  loop().run();
  EXPECT_EQ(calls, 5);
}

TEST_P(Running, continues_until_the_last_timer_has_expired) {
  Timer first(loop(), [this] { ++calls; });
  int left = 3;
  Timer second(loop(), [&] {
    ++calls;
    if (--left > 0) second.start(1ms);
  });
  first.start(1ms);
  second.start(0ms);
  loop().run();
  EXPECT_EQ(calls, 4);
}

TEST_P(Running, runs_posted_tasks_before_it_returns) {
  loop().post([this] {
    ++calls;
    loop().post([this] { ++calls; });
  });
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Running, once_waits_for_an_event_and_invokes_its_callback) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(5ms, 5ms);
  for (int i = 1; i <= 3; ++i) {
    loop().run_once();
    EXPECT_EQ(calls, i);
  }
}

TEST_P(Running, does_not_wake_up_for_a_deadline_that_was_moved) {
  Timer moved(loop(), [this] { ++calls; });
  moved.start(2ms);
  moved.start(10ms);
  const auto before = loop().stats().iterations;
  loop().run_once();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loop().stats().iterations, before + 1);
}

TEST_P(Running, a_wait_reports_what_is_ready_after_a_watcher_was_stopped) {
  test::Ends other = test::open_pipe();
  FdWatcher stopped(loop(), other.near.get(), Events::read, [](Events) { FAIL(); });
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(stopped.start());
  ASSERT_TRUE(watcher.start());
  run_iterations();
  Timer stops(loop(), [&] { stopped.stop(); });
  stops.start(0ms);
  // The backend deregisters the descriptor when the run ends, which may leave something in its
  // queue of completions.
  loop().run_once();
  test::write_to(pipe.far);
  Timer timer(loop(), [] { FAIL(); });
  timer.start(1min);
  const auto before = loop().stats().iterations;
  loop().run_once();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loop().stats().iterations, before + 1);
}

TEST_P(Running, once_does_not_return_for_a_timer_that_was_stopped) {
  Timer stopped(loop(), [] { FAIL(); });
  Timer later(loop(), [this] { ++calls; });
  later.start(10ms);
  stopped.start(2ms);
  stopped.stop();
  loop().run_once();
  EXPECT_EQ(calls, 1);
}

TEST_P(Running, ready_invokes_due_callbacks_and_does_not_wait) {
  Timer timer(loop(), [] { FAIL(); });
  timer.start(1h);
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  loop().run_ready();
  EXPECT_EQ(calls, 0);
  test::write_to(pipe.far);
  loop().run_ready();
  EXPECT_EQ(calls, 1);
  loop().post([this] { calls += 10; });
  loop().run_ready();
  EXPECT_EQ(calls, 12);
}

TEST_P(Running, work_that_becomes_due_in_a_callback_runs_in_a_later_iteration) {
  Timer second(loop(), [this] { calls += 10; });
  Timer first(loop(), [&] {
    ++calls;
    second.start(0ms);
    loop().post([this] { calls += 100; });
  });
  first.start(0ms);
  loop().run_once();
  EXPECT_EQ(calls, 1);
  while (calls < 111) loop().run_once();
  EXPECT_EQ(calls, 111);
}

TEST_P(Running, a_task_posted_by_the_callback_of_a_watcher_runs_in_the_next_iteration) {
  test::write_to(pipe.far);
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) {
    ++calls;
    watcher.stop();
    loop().post([this] { calls += 100; });
  });
  ASSERT_TRUE(watcher.start());
  loop().run_once();
  EXPECT_EQ(calls, 1);
  loop().run_once();
  EXPECT_EQ(calls, 101);
}

TEST_P(Running, stop_ends_run_after_the_callbacks_of_the_iteration) {
  Timer first(loop(), [this] {
    ++calls;
    loop().stop();
  });
  Timer second(loop(), [this] {
    ++calls;
    loop().stop();
  });
  Timer later(loop(), [this] { ++calls; });
  later.start(1h);
  first.start(0ms);
  second.start(0ms);
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Running, stop_before_run_ends_only_the_next_run) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(0ms);
  loop().stop();
  loop().run();
  EXPECT_EQ(calls, 0);
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(Running, an_exception_that_leaves_run_uses_up_a_stop) {
  Timer timer(loop(), [this] {
    ++calls;
    loop().stop();
    throw calls;
  });
  for (const bool once : {false, true}) {
    timer.start(0ms);
    EXPECT_THROW(once ? loop().run_once() : loop().run(), int);
  }
  Timer later(loop(), [this] { calls += 10; });
  later.start(0ms);
  loop().run();
  EXPECT_EQ(calls, 12);
}

TEST_P(Running, ready_leaves_a_stop_for_the_next_run) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(0ms);
  loop().stop();
  while (calls == 0) loop().run_ready();
  timer.start(0ms);
  loop().run();
  EXPECT_EQ(calls, 1);
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Running, a_reference_keeps_the_loop_running) {
  loop().ref();
  Timer timer(loop(), [this] {
    ++calls;
    // Dropping the last reference ends run().
    loop().unref();
  });
  timer.start(1ms);
  loop().run();
  EXPECT_EQ(calls, 1);
  loop().run();
}

TEST_P(Running, a_watcher_without_its_reference_does_not_keep_the_loop_running) {
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  loop().unref();
  loop().run();
  EXPECT_EQ(calls, 0);
  // The watcher still works while another reference keeps the loop running.
  test::write_to(pipe.far);
  Timer timer(loop(), [] {});
  timer.start(1ms);
  loop().run();
  EXPECT_GE(calls, 1);
  loop().ref();
  watcher.stop();
  loop().run();
}

TEST_P(Running, timers_without_their_references_do_not_keep_the_loop_running) {
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 100; ++i) {
    timers.push_back(std::make_unique<Timer>(loop(), [this] { ++calls; }));
    timers.back()->start(1h + i * 1s);
    if (i < 3) loop().unref();
  }
  Timer sooner(loop(), [&] {
    // Three timers stay started, but three references were dropped, so run() returns.
    for (std::size_t i = 0; i < timers.size(); ++i) {
      if (i < 40 || i > 42) timers[i]->stop();
    }
  });
  sooner.start(1ms);
  loop().run();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(timers[41]->is_started());
  for (int i = 0; i < 3; ++i) loop().ref();
  // Stopped timers can be restarted.
  timers[41]->start(0ms);
  timers[7]->start(0ms);
  timers[40]->stop();
  timers[42]->stop();
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Running, now_is_the_beginning_of_the_iteration) {
  std::vector<TimePoint> seen;
  Timer timer(loop(), [&] {
    const TimePoint began = loop().now();
    EXPECT_LE(began, Clock::now());
    EXPECT_GE(began, timer.deadline() == never ? TimePoint() : timer.deadline());
    while (Clock::now() < began + 1ms) {
    }
    EXPECT_EQ(loop().now(), began);
    loop().update_now();
    EXPECT_GE(loop().now(), began + 1ms);
    seen.push_back(began);
  });
  timer.start(0ms);
  loop().run();
  timer.start(1ms);
  loop().run();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_GE(seen[1], seen[0] + 2ms);
}

TEST_P(Running, a_nested_run_invokes_the_remaining_callbacks_of_the_iteration) {
  std::vector<int> log;
  Timer first(loop(), [&] {
    log.push_back(1);
    loop().run_ready();
    log.push_back(9);
  });
  Timer second(loop(), [&] { log.push_back(2); });
  const TimePoint past = Clock::now() - 1s;
  first.start_at(past);
  second.start_at(past + 1ms);
  loop().run();
  EXPECT_EQ(log, (std::vector{1, 2, 9}));
}

TEST_P(Running, a_nested_run_waits_and_stops_on_its_own) {
  std::vector<int> log;
  Timer inner(loop(), [&] {
    log.push_back(2);
    loop().stop();
  });
  Timer after(loop(), [&] { log.push_back(4); });
  Timer outer(loop(), [&] {
    log.push_back(1);
    inner.start(1ms);
    loop().run();
    log.push_back(3);
    after.start(1ms);
  });
  outer.start(0ms);
  loop().run();
  // The stop() ended only the nested run().
  EXPECT_EQ(log, (std::vector{1, 2, 3, 4}));
}

TEST_P(Running, a_nested_run_in_a_posted_task_keeps_the_order_of_posts) {
  std::vector<int> log;
  loop().post([&] {
    log.push_back(1);
    loop().post([&] { log.push_back(3); });
    loop().run();
    log.push_back(4);
  });
  loop().post([&] { log.push_back(2); });
  loop().run();
  EXPECT_EQ(log, (std::vector{1, 2, 3, 4}));
}

TEST_P(Running, a_closure_survives_a_nested_run_that_destroys_its_watcher) {
  const auto token = std::make_shared<int>(7);
  std::optional<Timer> timer;
  timer.emplace(loop(), [&, token] {
    timer.reset();
    loop().run_once();
    EXPECT_EQ(*token, 7);
    EXPECT_EQ(token.use_count(), 2);
  });
  Timer other(loop(), [this] { ++calls; });
  timer->start(0ms);
  other.start(1ms);
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Running, higher_priorities_are_invoked_first_in_an_iteration) {
  std::vector<int> log;
  std::vector<Timer> timers;
  for (const int priority : {-2, 1, 0, 2, -1}) {
    timers.emplace_back(loop(), [&log, priority] { log.push_back(priority); });
    timers.back().set_priority(priority);
    EXPECT_EQ(timers.back().priority(), priority);
  }
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) {
    log.push_back(2);
    watcher.stop();
  });
  watcher.set_priority(2);
  test::write_to(pipe.far);
  ASSERT_TRUE(watcher.start());
  for (Timer& timer : timers) timer.start_at(TimePoint());
  loop().run_once();
  EXPECT_EQ(log, (std::vector{2, 2, 1, 0, -1, -2}));
}

}  // namespace
}  // namespace tambour::running_test
