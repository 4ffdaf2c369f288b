// A hundred thousand operations, many at once. Every event is counted: io_uring rings smaller than
// the number of due events (io_uring_small) must lose none.
#include <unistd.h>

#include <cstddef>
#include <deque>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/scale.h"

namespace tambour::many_operations_test {
namespace {

/// A pipe that receives one byte per round; its callback reads that byte.
struct Source {
  Source(EventLoop& loop, Trigger trigger)
      : watcher(
            loop, pipe.near.get(), Events::read, [this](Events events) { take(events); }, trigger) {
    EXPECT_TRUE(watcher.start());
  }
  void take(Events events) {
    char byte = 0;
    EXPECT_EQ(events, Events::read);
    EXPECT_EQ(::read(pipe.near.get(), &byte, 1), 1);
    ++calls;
  }
  test::Ends pipe = test::open_pipe();
  std::size_t calls = 0;
  FdWatcher watcher;
};

class ManyOperations : public test::OnEveryBackend {
 protected:
  /// Each round causes exactly one event per source.
  void play(Trigger trigger, bool restart) {
    constexpr std::size_t at_once = 200;
    const std::size_t rounds = test::scaled(100'000) / at_once;
    std::deque<Source> sources;
    for (std::size_t i = 0; i < at_once; ++i) sources.emplace_back(loop(), trigger);
    run_iterations();
    std::size_t total = 0;
    for (std::size_t round = 1; round <= rounds; ++round) {
      for (Source& source : sources) {
        if (restart) source.watcher.stop();
        test::write_to(source.pipe.far);
        if (restart) {
          ASSERT_TRUE(source.watcher.start());
        }
      }
      ASSERT_TRUE(run_until([&] {
        total = 0;
        for (const Source& source : sources) total += source.calls;
        return total >= at_once * round;
      })) << total
          << " of " << at_once * round;
      for (const Source& source : sources) ASSERT_EQ(source.calls, round);
    }
    EXPECT_EQ(total, at_once * rounds);
  }
};

TAMBOUR_ON_EVERY_BACKEND(ManyOperations);

TEST_P(ManyOperations, none_of_a_hundred_thousand_levels_is_lost) { play(Trigger::level, false); }

TEST_P(ManyOperations, none_of_a_hundred_thousand_edges_is_lost) { play(Trigger::edge, false); }

TEST_P(ManyOperations, none_is_lost_by_watchers_that_stop_and_start) { play(Trigger::level, true); }

}  // namespace
}  // namespace tambour::many_operations_test
