// Handles can be moved while stopped, started or due, and while their own callback runs.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::moves_test {
namespace {

using namespace std::chrono_literals;

class Moves : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  test::Ends other = test::open_pipe();
  int calls = 0;

  FdWatcher reader(const test::Ends& ends, int& count) {
    return {loop(), ends.near.get(), Events::read, [&count](Events) { ++count; }};
  }
  Timer timer(int& count) {
    return {loop(), [&count] { ++count; }};
  }
};

TAMBOUR_ON_EVERY_BACKEND(Moves);

TEST_P(Moves, a_stopped_watcher_moves_and_starts) {
  FdWatcher first = reader(pipe, calls);
  FdWatcher second(std::move(first));
  EXPECT_FALSE(second.is_started());
  ASSERT_TRUE(second.start());
  test::write_to(pipe.far);
  run_iterations(2);
  EXPECT_EQ(calls, 2);
}

TEST_P(Moves, a_started_watcher_stays_started_when_moved) {
  std::optional<FdWatcher> first(reader(pipe, calls));
  ASSERT_TRUE(first->start());
  run_iterations();
  FdWatcher second(std::move(*first));
  EXPECT_FALSE(first->is_started());
  EXPECT_TRUE(second.is_started());
  first.reset();
  test::write_to(pipe.far);
  run_iterations(2);
  EXPECT_EQ(calls, 2);
  second.stop();
  run_iterations(2);
  EXPECT_EQ(calls, 2);
  loop().run();
}

TEST_P(Moves, assignment_stops_the_replaced_watcher) {
  int replaced = 0;
  FdWatcher target = reader(other, replaced);
  ASSERT_TRUE(target.start());
  FdWatcher source = reader(pipe, calls);
  ASSERT_TRUE(source.start());
  test::write_to(pipe.far);
  test::write_to(other.far);
  target = std::move(source);
  run_iterations(2);
  EXPECT_EQ(replaced, 0);
  EXPECT_EQ(calls, 2);
  // Move assignment to a moved-from watcher.
  source = std::move(target);
  run_iterations(2);
  EXPECT_EQ(calls, 4);
  FdWatcher& same = source;
  source = std::move(same);
  run_iterations(2);
  EXPECT_EQ(calls, 6);
}

TEST_P(Moves, a_vector_of_started_watchers_grows) {
  std::vector<int> counts(100);
  std::vector<FdWatcher> watchers;
  std::vector<test::Ends> pipes;
  for (int& count : counts) {
    pipes.push_back(test::open_pipe());
    // Two watchers per descriptor, so that the per-descriptor lists are updated too.
    for (int i = 0; i < 2; ++i) {
      watchers.push_back(reader(pipes.back(), count));
      ASSERT_TRUE(watchers.back().start());
    }
    run_iterations(1);
  }
  for (const auto& ends : pipes) test::write_to(ends.far);
  ASSERT_TRUE(run_until([&counts] { return *std::ranges::min_element(counts) >= 2; }));
  watchers.erase(watchers.begin(), watchers.begin() + 100);
  counts.assign(counts.size(), 0);
  run_iterations(2);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(counts[i], 0);
  EXPECT_TRUE(run_until([&counts] { return counts[50] > 0 && counts[99] > 0; }));
}

TEST_P(Moves, a_watcher_that_is_due_moves_and_is_called) {
  std::array<std::optional<FdWatcher>, 2> watchers;
  std::array<std::optional<FdWatcher>, 2> moved;
  for (std::size_t i = 0; i < 2; ++i) {
    watchers[i].emplace(loop(), pipe.near.get(), Events::read, [&, i](Events) {
      ++calls;
      if (watchers[1 - i]) moved[1 - i].emplace(*std::exchange(watchers[1 - i], std::nullopt));
    });
    ASSERT_TRUE(watchers[i]->start());
  }
  test::write_to(pipe.far);
  run_iterations(1);
  EXPECT_EQ(calls, 2);
}

TEST_P(Moves, a_watcher_moves_inside_its_own_callback) {
  const auto token = std::make_shared<int>(7);
  auto watcher = std::make_unique<std::optional<FdWatcher>>();
  std::optional<FdWatcher> moved;
  watcher->emplace(loop(), pipe.near.get(), Events::read, [&, token](Events) {
    ++calls;
    if (!moved) {
      moved.emplace(std::move(**watcher));
      watcher.reset();
    }
    EXPECT_EQ(*token, 7);
  });
  ASSERT_TRUE((*watcher)->start());
  test::write_to(pipe.far);
  run_iterations(3);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(moved->is_started());
}

TEST_P(Moves, a_watcher_is_assigned_to_inside_its_own_callback) {
  const auto token = std::make_shared<int>(7);
  int second = 0;
  std::optional<FdWatcher> watcher;
  watcher.emplace(loop(), pipe.near.get(), Events::read, [&, token](Events) {
    ++calls;
    FdWatcher next = reader(pipe, second);
    ASSERT_TRUE(next.start());
    *watcher = std::move(next);
    EXPECT_EQ(*token, 7);
  });
  ASSERT_TRUE(watcher->start());
  test::write_to(pipe.far);
  run_iterations(3);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Moves, timers_move_stopped_and_started) {
  Timer first = timer(calls);
  Timer second(std::move(first));
  second.start(1ms);
  Timer third(std::move(second));
  EXPECT_FALSE(second.is_started());
  EXPECT_TRUE(third.is_started());
  loop().run();
  EXPECT_EQ(calls, 1);
  third.start(1ms);
  first = std::move(third);
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Moves, a_timer_that_is_assigned_to_does_not_expire) {
  int replaced = 0;
  Timer target = timer(replaced);
  target.start(0ms);
  Timer source = timer(calls);
  source.start(1ms, 1ms);
  target = std::move(source);
  ASSERT_TRUE(run_until([this] { return calls >= 3; }));
  EXPECT_EQ(replaced, 0);
}

TEST_P(Moves, a_vector_of_started_timers_grows) {
  std::vector<int> counts(500);
  std::vector<Timer> timers;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    timers.push_back(timer(counts[i]));
    timers.back().start(std::chrono::microseconds(i * 7919 % 2000));
  }
  loop().run();
  EXPECT_EQ(counts, std::vector<int>(500, 1));
}

TEST_P(Moves, a_timer_that_is_due_moves_and_is_called) {
  std::array<std::optional<Timer>, 2> timers;
  std::array<std::optional<Timer>, 2> moved;
  for (std::size_t i = 0; i < 2; ++i) {
    timers[i].emplace(loop(), [&, i] {
      ++calls;
      if (timers[1 - i]) moved[1 - i].emplace(*std::exchange(timers[1 - i], std::nullopt));
    });
    timers[i]->start(0ms);
  }
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Moves, a_timer_moves_inside_its_own_callback) {
  const auto token = std::make_shared<int>(7);
  std::optional<Timer> moved;
  auto first = std::make_unique<std::optional<Timer>>();
  first->emplace(loop(), [&, token] {
    if (first) {
      moved.emplace(std::move(**first));
      first.reset();
    }
    if (++calls == 3) moved->stop();
    EXPECT_EQ(*token, 7);
  });
  (*first)->start(0ms, 1ms);
  loop().run();
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace tambour::moves_test
