// Level-triggered: reported in every iteration. Edge-triggered: reported at least once for each new
// event.
#include <unistd.h>

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour {
namespace {

class Triggers : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
};

TAMBOUR_ON_EVERY_BACKEND(Triggers);

TEST_P(Triggers, levels_are_told_in_each_turn_until_the_cause_is_gone) {
  int calls = 0;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  run_turns(1);
  EXPECT_EQ(calls, 0);
  test::write_to(pipe.far, "abc");
  for (int turn = 1; turn <= 5; ++turn) {
    run_turns(1);
    EXPECT_EQ(calls, turn);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe.near.get(), &byte, 1), 1);
  run_turns(1);
  EXPECT_EQ(calls, 6) << "two bytes are left";
  test::drain(pipe.near);
  run_turns(5);
  EXPECT_EQ(calls, 6);
}

TEST_P(Triggers, edges_are_told_once_where_there_are_edges) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_turns(5);
  EXPECT_EQ(calls, traits().edges ? 1 : 5);
}

TEST_P(Triggers, no_edge_is_lost) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  run_turns(1);
  for (int i = 0; i < 100; ++i) {
    const int before = calls;
    test::write_to(pipe.far);
    run_turns(1);
    ASSERT_GT(calls, before) << "byte " << i << " behind those that were not read";
  }
  test::drain(pipe.near);
  run_turns(2);
  const int before = calls;
  run_turns(2);
  EXPECT_EQ(calls, before);
  test::write_to(pipe.far);
  run_turns(1);
  EXPECT_GT(calls, before);
}

TEST_P(Triggers, an_edge_during_the_callback_is_told_in_a_later_turn) {
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
  run_turns(20);
  EXPECT_EQ(calls, 10);
}

TEST_P(Triggers, an_edge_that_was_there_before_the_start_is_told) {
  test::write_to(pipe.far);
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  run_turns();
  EXPECT_GE(calls, 1);
}

// The descriptor is already registered, and its edge was reported to the first watcher.
TEST_P(Triggers, a_second_edge_watcher_is_told_of_what_is_there) {
  FdWatcher first(loop(), pipe.near.get(), Events::read, [](Events) {}, Trigger::edge);
  ASSERT_TRUE(first.start());
  test::write_to(pipe.far);
  run_turns();
  int calls = 0;
  FdWatcher second(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(second.start());
  run_turns();
  EXPECT_GE(calls, 1);
}

TEST_P(Triggers, an_edge_watcher_that_starts_again_is_told_of_what_is_there) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_turns();
  for (const bool turns_between : {false, true}) {
    const int before = calls;
    watcher.stop();
    if (turns_between) run_turns();
    ASSERT_TRUE(watcher.start());
    run_turns();
    EXPECT_GT(calls, before) << "turns between: " << turns_between;
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
  run_turns();
  test::write_to(pipe.far);
  test::write_to(other.far);
  run_turns(5);
  EXPECT_GE(calls[0], 1);
  EXPECT_GE(calls[1], 1);
}

TEST_P(Triggers, an_edge_of_a_new_interest_is_told) {
  const auto sockets = test::open_socketpair();
  Events seen = Events::none;
  FdWatcher reader(loop(), sockets.near.get(), Events::read, [](Events) {}, Trigger::edge);
  FdWatcher writer(
      loop(), sockets.near.get(), Events::write, [&](Events events) { seen |= events; },
      Trigger::edge);
  ASSERT_TRUE(reader.start());
  ASSERT_TRUE(writer.start());
  test::write_to(sockets.far);
  run_turns();
  EXPECT_EQ(seen, Events::write);
  // The kernel registration stays the same, but the interest of this watcher changes.
  writer.set(Events::read | Events::write, Trigger::edge);
  run_turns();
  EXPECT_EQ(seen, Events::read | Events::write);
}

TEST_P(Triggers, a_level_watcher_beside_an_edge_watcher_is_told_in_each_turn) {
  int levels = 0;
  int edges = 0;
  FdWatcher edge(
      loop(), pipe.near.get(), Events::read, [&edges](Events) { ++edges; }, Trigger::edge);
  FdWatcher level(loop(), pipe.near.get(), Events::read, [&levels](Events) { ++levels; });
  ASSERT_TRUE(edge.start());
  run_turns(1);
  ASSERT_TRUE(level.start());
  test::write_to(pipe.far);
  run_turns(5);
  EXPECT_EQ(levels, 5);
  EXPECT_GE(edges, 1);
  // Once alone, the edge-triggered watcher reports the known event at most once more.
  level.stop();
  edges = 0;
  run_turns(5);
  if (traits().edges) {
    EXPECT_LE(edges, 1);
  }
  test::write_to(pipe.far);
  edges = 0;
  run_turns(2);
  EXPECT_GE(edges, 1);
}

TEST_P(Triggers, the_trigger_can_be_changed_while_started) {
  int calls = 0;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&calls](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  test::write_to(pipe.far);
  run_turns(3);
  EXPECT_EQ(calls, 3);
  watcher.set(Events::read, Trigger::edge);
  calls = 0;
  run_turns(5);
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, traits().edges ? 1 : 5);
  watcher.set(Events::read, Trigger::level);
  calls = 0;
  run_turns(5);
  EXPECT_EQ(calls, 5);
}

TEST_P(Triggers, an_edge_of_writing_is_told_when_there_is_room_again) {
  int calls = 0;
  FdWatcher watcher(
      loop(), pipe.far.get(), Events::write, [&calls](Events) { ++calls; }, Trigger::edge);
  ASSERT_TRUE(watcher.start());
  run_turns();
  EXPECT_GE(calls, 1);
  for (int round = 0; round < 10; ++round) {
    test::fill(pipe.far);
    run_turns();
    calls = 0;
    run_turns();
    EXPECT_EQ(calls, 0);
    test::drain(pipe.near);
    run_turns();
    EXPECT_GE(calls, 1);
  }
}

}  // namespace
}  // namespace tambour
