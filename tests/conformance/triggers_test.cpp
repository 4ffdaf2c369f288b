// Level-triggered: reported in every iteration. Edge-triggered: reported at least once for each new
// event.
#include <unistd.h>

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::triggers_test {
namespace {

class Triggers : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
};

TAMBOUR_ON_EVERY_BACKEND(Triggers);

TEST_P(Triggers, levels_are_reported_in_each_iteration_until_the_condition_ends) {
  int calls = 0;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  run_iterations(1);
  EXPECT_EQ(calls, 0);
  test::write_to(pipe.far, "abc");
  for (int iteration = 1; iteration <= 5; ++iteration) {
    run_iterations(1);
    EXPECT_EQ(calls, iteration);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe.near.get(), &byte, 1), 1);
  run_iterations(1);
  EXPECT_EQ(calls, 6) << "two bytes are left";
  test::drain(pipe.near);
  run_iterations(5);
  EXPECT_EQ(calls, 6);
}

TEST_P(Triggers, edges_are_reported_once_if_the_backend_has_edges) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_iterations(5);
  EXPECT_EQ(calls, traits().supports_edge_triggered ? 1 : 5);
}

TEST_P(Triggers, no_edge_is_lost) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  run_iterations(1);
  for (int i = 0; i < 100; ++i) {
    const int before = calls;
    test::write_to(pipe.far);
    run_iterations(1);
    ASSERT_GT(calls, before) << "byte " << i << " after bytes that were not read";
  }
  test::drain(pipe.near);
  run_iterations(2);
  const int before = calls;
  run_iterations(2);
  EXPECT_EQ(calls, before);
  test::write_to(pipe.far);
  run_iterations(1);
  EXPECT_GT(calls, before);
}

TEST_P(Triggers, an_edge_during_the_callback_is_reported_in_a_later_iteration) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read,
      [&](Events) {
        test::drain(pipe.near);
        if (++calls < 10) test::write_to(pipe.far);
      },
      Trigger::edge);
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_iterations(20);
  EXPECT_EQ(calls, 10);
}

TEST_P(Triggers, an_edge_before_the_start_is_reported) {
  test::write_to(pipe.far);
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  run_iterations();
  EXPECT_GE(calls, 1);
}

// The descriptor is already registered, and its edge was reported to the first watcher.
TEST_P(Triggers, a_second_edge_watcher_receives_the_present_condition) {
  FdWatcher first(loop(), pipe.near.get(), Events::read, [](Events) {}, Trigger::edge);
  ASSERT_TRUE(first.start());
  test::write_to(pipe.far);
  run_iterations();
  int calls = 0;
  FdWatcher second(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(second.start());
  run_iterations();
  EXPECT_GE(calls, 1);
}

TEST_P(Triggers, an_edge_watcher_that_starts_again_receives_the_present_condition) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_iterations();
  for (const bool iterations_between : {false, true}) {
    const int before = calls;
    watcher.stop();
    if (iterations_between) run_iterations();
    ASSERT_TRUE(watcher.start());
    run_iterations();
    EXPECT_GT(calls, before) << "iterations between: " << iterations_between;
  }
}

// The watcher is stopped and restarted while its event is queued in this iteration: the queued
// event is dropped and must be reported again.
TEST_P(Triggers, an_edge_is_not_lost_by_stop_and_start_while_it_is_pending) {
  const auto other = test::open_pipe();
  std::vector<std::unique_ptr<FdWatcher>> watchers;
  std::vector<int> calls(2);
  for (std::size_t i = 0; i < 2; ++i) {
    watchers.push_back(std::make_unique<FdWatcher>(
        loop(), i == 0 ? pipe.near.get() : other.near.get(), Events::read,
        [&, i](Events) {
          if (++calls[i] > 1 || calls[1 - i] > 0) return;
          FdWatcher& pending = *watchers[1 - i];
          pending.stop();
          ASSERT_TRUE(pending.start());
        },
        Trigger::edge));
    ASSERT_TRUE(watchers.back()->start());
  }
  run_iterations();
  test::write_to(pipe.far);
  test::write_to(other.far);
  run_iterations(5);
  EXPECT_GE(calls[0], 1);
  EXPECT_GE(calls[1], 1);
}

TEST_P(Triggers, an_edge_of_a_new_interest_is_reported) {
  const auto sockets = test::open_socketpair();
  Events seen = Events::none;
  FdWatcher reader(loop(), sockets.near.get(), Events::read, [](Events) {}, Trigger::edge);
  FdWatcher writer(
      loop(), sockets.near.get(), Events::write, [&](Events events) { seen |= events; },
      Trigger::edge);
  ASSERT_TRUE(reader.start());
  ASSERT_TRUE(writer.start());
  test::write_to(sockets.far);
  run_iterations();
  EXPECT_EQ(seen, Events::write);
  // The kernel registration stays the same, but the interest of this watcher changes.
  writer.set(Events::read | Events::write, Trigger::edge);
  run_iterations();
  EXPECT_EQ(seen, Events::read | Events::write);
}

TEST_P(Triggers, a_level_watcher_beside_an_edge_watcher_is_invoked_in_each_iteration) {
  int levels = 0;
  int edges = 0;
  FdWatcher edge(
      loop(), pipe.near.get(), Events::read, [&edges](Events) { ++edges; }, Trigger::edge);
  FdWatcher level(loop(), pipe.near.get(), Events::read, [&levels](Events) { ++levels; });
  ASSERT_TRUE(edge.start());
  run_iterations(1);
  ASSERT_TRUE(level.start());
  test::write_to(pipe.far);
  run_iterations(5);
  EXPECT_EQ(levels, 5);
  EXPECT_GE(edges, 1);
  // Once alone, the edge-triggered watcher reports the known event at most once more.
  level.stop();
  edges = 0;
  run_iterations(5);
  if (traits().supports_edge_triggered) {
    EXPECT_LE(edges, 1);
  }
  test::write_to(pipe.far);
  edges = 0;
  run_iterations(2);
  EXPECT_GE(edges, 1);
}

TEST_P(Triggers, the_trigger_can_be_changed_while_started) {
  int calls = 0;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_iterations(3);
  EXPECT_EQ(calls, 3);
  watcher.set(Events::read, Trigger::edge);
  calls = 0;
  run_iterations(5);
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, traits().supports_edge_triggered ? 1 : 5);
  watcher.set(Events::read, Trigger::level);
  calls = 0;
  run_iterations(5);
  EXPECT_EQ(calls, 5);
}

TEST_P(Triggers, a_write_edge_is_reported_when_the_buffer_has_space_again) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.far.get(), Events::write, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  run_iterations();
  EXPECT_GE(calls, 1);
  for (int round = 0; round < 10; ++round) {
    test::fill(pipe.far);
    run_iterations();
    calls = 0;
    run_iterations();
    EXPECT_EQ(calls, 0);
    test::drain(pipe.near);
    run_iterations();
    EXPECT_GE(calls, 1);
  }
}

}  // namespace
}  // namespace tambour::triggers_test
