// Starting, stopping and changing watchers: within an iteration, across iterations and inside
// callbacks.
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::watcher_changes_test {
namespace {

class WatcherChanges : public test::OnEveryBackend {
 protected:
  test::Ends sockets = test::open_socketpair();
  int calls = 0;
  Events seen = Events::none;
  Callback<void(Events)> note() {
    return [this](Events events) {
      ++calls;
      seen |= events;
    };
  }
};

TAMBOUR_ON_EVERY_BACKEND(WatcherChanges);

TEST_P(WatcherChanges, a_watcher_is_not_started_by_its_constructor) {
  test::write_to(sockets.far);
  const FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  EXPECT_FALSE(watcher.is_started());
  EXPECT_EQ(watcher.fd(), sockets.near.get());
  EXPECT_EQ(watcher.interest(), Events::read);
  run_iterations();
  EXPECT_EQ(calls, 0);
}

TEST_P(WatcherChanges, starting_and_stopping_twice_changes_nothing) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  test::write_to(sockets.far);
  EXPECT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.start());
  EXPECT_TRUE(watcher.is_started());
  run_iterations(3);
  EXPECT_EQ(calls, 3);
  watcher.stop();
  watcher.stop();
  EXPECT_FALSE(watcher.is_started());
  run_iterations(3);
  EXPECT_EQ(calls, 3);
  // References are balanced: run() returns if nothing is started.
  loop().run();
}

TEST_P(WatcherChanges, stop_and_start_within_an_iteration_change_nothing) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  ASSERT_TRUE(watcher.start());
  test::write_to(sockets.far);
  for (int iteration = 1; iteration <= 5; ++iteration) {
    watcher.stop();
    ASSERT_TRUE(watcher.start());
    run_iterations(1);
    EXPECT_EQ(calls, iteration);
  }
}

TEST_P(WatcherChanges, stop_and_start_across_iterations) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  test::write_to(sockets.far);
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(watcher.start());
    run_iterations(1);
    EXPECT_EQ(calls, round);
    watcher.stop();
    run_iterations(2);
    EXPECT_EQ(calls, round);
  }
}

TEST_P(WatcherChanges, an_event_while_stopped_is_reported_after_the_next_start) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  ASSERT_TRUE(watcher.start());
  run_iterations();
  watcher.stop();
  run_iterations();
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(watcher.start());
  run_iterations(1);
  EXPECT_EQ(calls, 1);
}

TEST_P(WatcherChanges, a_stopped_watcher_does_not_keep_the_loop_running) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read | Events::write, note());
  ASSERT_TRUE(watcher.start());
  run_iterations();
  watcher.stop();
  test::write_to(sockets.far);
  using namespace std::chrono_literals;
  EXPECT_TRUE(sleeps_through(50ms));
}

TEST_P(WatcherChanges, the_interest_of_a_started_watcher) {
  test::write_to(sockets.far);
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  ASSERT_TRUE(watcher.start());
  for (const Events interest : {Events::write, Events::read, Events::read | Events::write,
                                Events::none, Events::read, Events::none, Events::write}) {
    watcher.set(interest);
    EXPECT_TRUE(watcher.is_started());
    EXPECT_EQ(watcher.interest(), interest);
    seen = Events::none;
    run_iterations(2);
    EXPECT_EQ(seen, interest);
  }
}

TEST_P(WatcherChanges, the_interest_of_a_stopped_watcher) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  watcher.set(Events::write);
  EXPECT_FALSE(watcher.is_started());
  run_iterations();
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(watcher.start());
  run_iterations();
  EXPECT_EQ(seen, Events::write);
}

TEST_P(WatcherChanges, the_interest_inside_the_callback) {
  std::vector<Events> log;
  FdWatcher watcher(loop(), sockets.near.get(), Events::write, [&](Events events) {
    log.push_back(events);
    // Only the last set() counts.
    watcher.set(Events::none);
    watcher.set(events == Events::write ? Events::read : Events::write);
  });
  ASSERT_TRUE(watcher.start());
  test::write_to(sockets.far);
  run_iterations(4);
  EXPECT_EQ(log, (std::vector{Events::write, Events::read, Events::write, Events::read}));
}

// Both are due in one iteration; the first removes the interest that the second is about to report.
TEST_P(WatcherChanges, an_interest_removed_in_an_iteration_is_not_reported_in_it) {
  std::array<std::optional<FdWatcher>, 2> watchers;
  int invocations = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    watchers[i].emplace(loop(), sockets.near.get(), Events::read | Events::write,
                        [&, i](Events events) {
                          if (invocations++ == 0) {
                            watchers[1 - i]->set(Events::write);
                          } else {
                            EXPECT_EQ(events, Events::write);
                          }
                          watchers[i]->stop();
                        });
    ASSERT_TRUE(watchers[i]->start());
  }
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(invocations, 2);
}

TEST_P(WatcherChanges, an_interest_that_was_cleared_is_never_reported) {
  std::array<std::optional<FdWatcher>, 2> watchers;
  int invocations = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    watchers[i].emplace(loop(), sockets.near.get(), Events::read, [&, i](Events) {
      ++invocations;
      watchers[1 - i]->set(Events::none);
      watchers[i]->stop();
    });
    ASSERT_TRUE(watchers[i]->start());
  }
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(invocations, 1);
}

TEST_P(WatcherChanges, a_watcher_that_is_stopped_while_due_is_not_called) {
  std::array<std::optional<FdWatcher>, 2> watchers;
  int invocations = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    watchers[i].emplace(loop(), sockets.near.get(), Events::read, [&, i](Events) {
      ++invocations;
      watchers[1 - i]->stop();
    });
    ASSERT_TRUE(watchers[i]->start());
  }
  test::write_to(sockets.far);
  run_iterations(1);
  EXPECT_EQ(invocations, 1);
  run_iterations(3);
  EXPECT_EQ(invocations, 4);
}

TEST_P(WatcherChanges, another_descriptor_for_a_started_watcher) {
  const auto other = test::open_pipe();
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  ASSERT_TRUE(watcher.start());
  run_iterations();
  watcher.set(other.near.get(), Events::read);
  EXPECT_TRUE(watcher.is_started());
  EXPECT_EQ(watcher.fd(), other.near.get());
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(calls, 0);
  test::write_to(other.far);
  run_iterations(1);
  EXPECT_EQ(calls, 1);
}

TEST_P(WatcherChanges, another_descriptor_for_a_stopped_watcher) {
  FdWatcher watcher(loop(), -1, Events::none, note());
  watcher.set(sockets.near.get(), Events::read);
  EXPECT_FALSE(watcher.is_started());
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(watcher.start());
  run_iterations(1);
  EXPECT_EQ(calls, 1);
}

TEST_P(WatcherChanges, another_descriptor_inside_the_callback) {
  auto pipes = std::array{test::open_pipe(), test::open_pipe(), test::open_pipe()};
  for (const auto& pipe : pipes) test::write_to(pipe.far);
  std::size_t at = 0;
  FdWatcher watcher(loop(), pipes[0].near.get(), Events::read, [&](Events) {
    if (++at == pipes.size()) return watcher.stop();
    watcher.set(pipes[at].near.get(), Events::read);
  });
  ASSERT_TRUE(watcher.start());
  run_iterations(6);
  EXPECT_EQ(at, 3U);
}

TEST_P(WatcherChanges, the_function_inside_the_callback) {
  const auto token = std::make_shared<int>(7);
  int second = 0;
  std::optional<FdWatcher> watcher;
  watcher.emplace(loop(), sockets.near.get(), Events::read, [&, token](Events) {
    ++calls;
    watcher->set_function([&second](Events) { ++second; });
    // The executing closure is still intact.
    EXPECT_EQ(*token, 7);
    EXPECT_EQ(token.use_count(), 2);
  });
  ASSERT_TRUE(watcher->start());
  test::write_to(sockets.far);
  run_iterations(3);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(WatcherChanges, the_file_is_released_by_the_iteration_after_stop) {
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, note());
  ASSERT_TRUE(watcher.start());
  run_iterations();
  watcher.stop();
  sockets.near.reset(-1);
  run_iterations();
  // The peer sees the close only when no reference to the file is left.
  FdWatcher peer(loop(), sockets.far.get(), Events::read, note());
  ASSERT_TRUE(peer.start());
  EXPECT_TRUE(run_until([this] { return calls > 0; }));
}

}  // namespace
}  // namespace tambour::watcher_changes_test
