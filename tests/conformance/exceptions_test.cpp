// An exception thrown by a callback propagates out of run(); the loop stays usable, and the
// remaining callbacks are not lost.
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::exceptions_test {
namespace {

using namespace std::chrono_literals;

struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("thrown by a callback") {}
};

class Exceptions : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  int calls = 0;
  int thrown = 0;

  /// Runs the loop until it has nothing left, catching exceptions.
  void run_to_the_end() {
    for (bool again = true; again;) {
      try {
        loop().run();
        again = false;
      } catch (const Thrown&) {
        ++thrown;
      }
    }
  }
};

TAMBOUR_ON_EVERY_BACKEND(Exceptions);

TEST_P(Exceptions, every_watcher_is_called_once_though_each_throws) {
  std::vector<std::unique_ptr<FdWatcher>> watchers;
  for (int i = 0; i < 10; ++i) {
    watchers.push_back(
        std::make_unique<FdWatcher>(loop(), pipe.near.get(), Events::read, [&, i](Events) {
          ++calls;
          watchers[static_cast<std::size_t>(i)]->stop();
          throw Thrown();
        }));
    ASSERT_TRUE(watchers.back()->start());
  }
  test::write_to(pipe.far);
  run_to_the_end();
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(thrown, 10);
}

TEST_P(Exceptions, every_timer_is_called_once_though_each_throws) {
  std::vector<Timer> timers;
  for (int i = 0; i < 10; ++i) {
    timers.emplace_back(loop(), [this] {
      ++calls;
      throw Thrown();
    });
    timers.back().start(0ms);
  }
  run_to_the_end();
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(thrown, 10);
  for (const Timer& timer : timers) EXPECT_FALSE(timer.is_started());
}

TEST_P(Exceptions, every_task_is_run_once_and_in_order_though_each_throws) {
  std::vector<int> log;
  for (int i = 0; i < 4; ++i) {
    loop().post([&log, i] {
      log.push_back(i);
      throw Thrown();
    });
  }
  run_to_the_end();
  EXPECT_EQ(log, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(thrown, 4);
}

TEST_P(Exceptions, handles_due_after_the_throwing_one_run_without_waiting) {
  Timer first(loop(), [] { throw Thrown(); });
  Timer second(loop(), [this] { ++calls; });
  Timer distant(loop(), [] { FAIL(); });
  const TimePoint past = Clock::now() - 1s;
  first.start_at(past);
  second.start_at(past + 1ms);
  distant.start(1h);
  EXPECT_THROW(loop().run(), Thrown);
  EXPECT_EQ(calls, 0);
  loop().run_once();
  EXPECT_EQ(calls, 1);
}

TEST_P(Exceptions, a_repeating_timer_keeps_expiring) {
  Timer timer(loop(), [&] {
    if (++calls == 3) timer.stop();
    throw Thrown();
  });
  timer.start(0ms, 1ms);
  run_to_the_end();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(thrown, 3);
}

TEST_P(Exceptions, a_watcher_that_throws_stays_started) {
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) {
    if (++calls == 3) watcher.stop();
    throw Thrown();
  });
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_to_the_end();
  EXPECT_EQ(calls, 3);
}

TEST_P(Exceptions, closures_are_freed_though_they_throw) {
  const auto token = std::make_shared<int>(7);
  std::optional<Timer> timer;
  timer.emplace(loop(), [&timer, token] {
    timer.reset();
    EXPECT_EQ(*token, 7);
    throw Thrown();
  });
  timer->start(0ms);
  EXPECT_THROW(loop().run(), Thrown);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Exceptions, pass_through_nested_runs) {
  Timer inner(loop(), [] { throw Thrown(); });
  Timer outer(loop(), [&] {
    ++calls;
    inner.start(0ms);
    loop().run();
    FAIL() << "the exception was lost";
  });
  outer.start(0ms);
  EXPECT_THROW(loop().run(), Thrown);
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(Exceptions, caught_inside_a_callback_leave_the_other_handles_due) {
  Timer third(loop(), [this] { ++calls; });
  Timer second(loop(), [] { throw Thrown(); });
  Timer first(loop(), [&] { EXPECT_THROW(loop().run_once(), Thrown); });
  const TimePoint past = Clock::now() - 1s;
  first.start_at(past);
  second.start_at(past + 1ms);
  third.start_at(past + 2ms);
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(Exceptions, leave_a_loop_that_can_be_destroyed_with_work_left) {
  Timer first(loop(), [] { throw Thrown(); });
  Timer one_shot(loop(), [this] { ++calls; });
  Timer repeating(loop(), [this] { ++calls; });
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  FdWatcher failed(loop(), 900, Events::read, [this](Events) { ++calls; });
  const TimePoint past = Clock::now() - 1s;
  first.start_at(past);
  // Dispatched first, even before items that became ready before the timers.
  first.set_priority(priority_max);
  one_shot.start_at(past + 1ms);
  repeating.start(0ms, 1ms);
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(failed.start());
  test::write_to(pipe.far);
  EXPECT_THROW(loop().run(), Thrown);
  destroy_loop();
  // All of them were due when the loop was destroyed; none is invoked.
  one_shot.stop();
  watcher.stop();
  EXPECT_EQ(calls, 0);
}

TEST_P(Exceptions, leave_callbacks_of_a_nested_run_in_the_order_of_their_priorities) {
  std::vector<int> log;
  Timer throws(loop(), [] { throw Thrown(); });
  Timer urgent(loop(), [&log] { log.push_back(1); });
  Timer nests(loop(), [&] {
    throws.start_at(TimePoint());
    urgent.start_at(TimePoint());
    EXPECT_THROW(loop().run_ready(), Thrown);
    log.push_back(-1);
  });
  Timer last(loop(), [&log] { log.push_back(-2); });
  throws.set_priority(2);
  urgent.set_priority(1);
  last.set_priority(-1);
  nests.start_at(TimePoint());
  last.start_at(TimePoint());
  Timer also(loop(), [&log] { log.push_back(0); });
  also.start_at(TimePoint());
  loop().run();
  EXPECT_EQ(log, (std::vector{-1, 1, 0, -2}));
}

}  // namespace
}  // namespace tambour::exceptions_test
