// A descriptor number may be reused for another file. No event of the former file may reach a
// watcher of the new one, and the new file's events must be reported.
#include <sys/eventfd.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::reused_descriptors_test {
namespace {

using namespace std::chrono_literals;

class ReusedDescriptors : public test::OnEveryBackend {
 protected:
  int calls = 0;

  static test::UniqueFd copy(const test::UniqueFd& fd) { return test::duplicate_above(fd, 0); }

  /// Opens a pipe whose read end has the closed descriptor number `number`.
  static test::Ends open_pipe_at(int number) {
    test::Ends pipe = test::open_pipe();
    if (pipe.near.get() == number) return pipe;
    return {test::UniqueFd(::dup2(pipe.near.get(), number)), std::move(pipe.far)};
  }
};

TAMBOUR_ON_EVERY_BACKEND(ReusedDescriptors);

// Odd files are ready, even ones are not; each is watched by a new watcher for one iteration.
TEST_P(ReusedDescriptors, a_hundred_thousand_files_under_one_number) {
  std::size_t expected = 0;
  std::size_t reported = 0;
  int number = -1;
  for (std::size_t i = 0; i < test::scaled(100'000); ++i) {
    const bool ready = i % 2 != 0;
    const test::UniqueFd file(::eventfd(ready ? 1 : 0, EFD_CLOEXEC));
    if (number < 0) number = file.get();
    ASSERT_EQ(file.get(), number);
    FdWatcher watcher(loop(), number, Events::read, [&reported, &ready](Events events) {
      EXPECT_EQ(events, Events::read);
      EXPECT_TRUE(ready) << "an event of another file";
      ++reported;
    });
    ASSERT_TRUE(watcher.start());
    loop().run_ready();
    expected += ready ? 1 : 0;
    ASSERT_EQ(reported, expected) << "cycle " << i;
  }
}

// Two files, of which one is ready, stay open under other numbers and alternate under one number.
TEST_P(ReusedDescriptors, two_files_alternate_under_one_number) {
  const auto full = test::open_pipe();
  const auto empty = test::open_pipe();
  test::write_to(full.far);
  const auto number = test::duplicate_above(full.near, 100);
  std::size_t expected = 0;
  std::size_t reported = 0;
  for (std::size_t i = 0; i < test::scaled(20'000); ++i) {
    const bool ready = i % 2 != 0;
    // dup2(2) closes the former file and reuses its number.
    ASSERT_EQ(::dup2(ready ? full.near.get() : empty.near.get(), number.get()), number.get());
    FdWatcher watcher(loop(), number.get(), Events::read, [&reported, &ready](Events) {
      EXPECT_TRUE(ready) << "an event of another file";
      ++reported;
    });
    ASSERT_TRUE(watcher.start());
    loop().run_ready();
    expected += ready ? 1 : 0;
    ASSERT_EQ(reported, expected) << "cycle " << i;
  }
}

TEST_P(ReusedDescriptors, one_watcher_serves_one_file_after_another) {
  std::optional<test::Ends> pipe(test::open_pipe());
  const int number = pipe->near.get();
  FdWatcher watcher(loop(), number, Events::read, [&](Events) {
    ++calls;
    test::drain(pipe->near);
  });
  ASSERT_TRUE(watcher.start());
  const std::size_t cycles = test::scaled(20'000);
  for (std::size_t i = 1; i <= cycles; ++i) {
    if (i % 3 == 0) run_iterations(1);
    const bool stopped = i % 2 == 0;
    if (stopped) watcher.stop();
    pipe.reset();
    pipe.emplace(test::open_pipe());
    ASSERT_EQ(pipe->near.get(), number);
    watcher.set(number, Events::read);
    if (stopped) {
      ASSERT_TRUE(watcher.start());
    }
    test::write_to(pipe->far);
    loop().run_ready();
    ASSERT_EQ(calls, static_cast<int>(i));
  }
}

// epoll(7), Q6: closing a descriptor does not remove the registration while another descriptor
// refers to the open file description, and its events are reported for the old number.
TEST_P(ReusedDescriptors, a_duplicate_keeps_no_registration_alive) {
  for (const bool watcher_stays : {false, true}) {
    auto former = test::open_pipe();
    const int number = former.near.get();
    const auto duplicate = copy(former.near);
    std::optional<FdWatcher> watcher;
    watcher.emplace(loop(), number, Events::read,
                    [](Events) { FAIL() << "an event of another file"; });
    ASSERT_TRUE(watcher->start());
    run_iterations();
    if (!watcher_stays) watcher.reset();
    if (watcher_stays) watcher->stop();
    former.near.reset(-1);
    const auto latter = open_pipe_at(number);
    ASSERT_EQ(latter.near.get(), number);

    int reported = 0;
    FdWatcher successor(loop(), number, Events::read, [&reported](Events) { ++reported; });
    ASSERT_TRUE(successor.start());
    run_iterations();
    test::write_to(former.far);
    run_iterations();
    EXPECT_EQ(reported, 0);
    EXPECT_TRUE(sleeps_through(50ms));
    EXPECT_EQ(reported, 0);
    test::write_to(latter.far);
    ASSERT_TRUE(run_until([&reported] { return reported > 0; }));
    test::drain(latter.near);
    reported = 0;
    EXPECT_TRUE(sleeps_through(50ms));
    EXPECT_EQ(reported, 0);
  }
}

TEST_P(ReusedDescriptors, a_duplicate_of_an_unwatched_file_does_not_make_the_loop_spin) {
  auto pipe = test::open_pipe();
  const auto duplicate = copy(pipe.near);
  {
    FdWatcher watcher(loop(), pipe.near.get(), Events::read, [](Events) { FAIL(); });
    ASSERT_TRUE(watcher.start());
    run_iterations();
  }
  pipe.near.reset(-1);
  test::write_to(pipe.far);
  EXPECT_TRUE(sleeps_through(50ms));
}

// By the next wait, another thread may have reused the number, so the loop must not touch it.
TEST_P(ReusedDescriptors, a_closed_descriptor_number_is_left_alone) {
  if (options().backend != BackendKind::epoll) GTEST_SKIP() << "keeps no registration by number";
  const auto calls_of_an_iteration = [this] {
    const auto before = loop().stats().system_calls;
    loop().run_ready();
    return loop().stats().system_calls - before;
  };
  loop().run_ready();
  const auto nothing = calls_of_an_iteration();
  for (const Events interest : {Events::read, Events::write}) {
    auto ends = test::open_pipe();
    test::write_to(ends.far);
    test::UniqueFd& watched = interest == Events::read ? ends.near : ends.far;
    FdWatcher watcher(loop(), watched.get(), interest, [&](Events) {
      watcher.stop();
      watched.reset(-1);
    });
    ASSERT_TRUE(watcher.start());
    loop().run_ready();
    EXPECT_EQ(watched.get(), -1);
    EXPECT_EQ(calls_of_an_iteration(), nothing) << "closed in its own callback";
  }
  auto ends = test::open_pipe();
  test::write_to(ends.far);
  FdWatcher watcher(loop(), ends.near.get(), Events::read, [&](Events) { watcher.stop(); });
  ASSERT_TRUE(watcher.start());
  loop().run_ready();
  loop().post([&] { ends.near.reset(-1); });
  EXPECT_EQ(calls_of_an_iteration(), nothing + 1) << "reported again, and then withdrawn";
  EXPECT_EQ(ends.near.get(), -1);
  EXPECT_EQ(calls_of_an_iteration(), nothing) << "closed after a report without effect";
}

TEST_P(ReusedDescriptors, watchers_keep_working_when_a_stale_registration_is_dropped) {
  // All other watchers keep working when the loop drops the stale registration.
  const auto file = test::open_regular_file();
  const auto steady = test::open_pipe();
  int reads = 0;
  int edges = 0;
  int always = 0;
  FdWatcher level(loop(), steady.near.get(), Events::read, [&reads](Events) { ++reads; });
  FdWatcher edge(
      loop(), steady.near.get(), Events::read, [&edges](Events) { ++edges; }, Trigger::edge);
  FdWatcher regular(loop(), file.get(), Events::read, [&always](Events) { ++always; });
  ASSERT_TRUE(level.start());
  ASSERT_TRUE(edge.start());
  ASSERT_TRUE(regular.start());
  for (int round = 0; round < 20; ++round) {
    auto pipe = test::open_pipe();
    const auto duplicate = copy(pipe.near);
    std::optional<FdWatcher> watcher;
    watcher.emplace(loop(), pipe.near.get(), Events::read, [](Events) { FAIL(); });
    ASSERT_TRUE(watcher->start());
    run_iterations(1);
    watcher.reset();
    pipe.near.reset(-1);
    test::write_to(pipe.far);
    run_iterations(3);
    reads = edges = always = 0;
    test::write_to(steady.far);
    loop().wake();
    run_iterations(1);
    EXPECT_EQ(reads, 1);
    EXPECT_EQ(edges, 1);
    EXPECT_EQ(always, 1);
    test::drain(steady.near);
    run_iterations(1);
  }
}

// A file gets its number back while the kernel still has the registration.
TEST_P(ReusedDescriptors, a_file_that_returns_to_its_number_is_reported) {
  auto pipe = test::open_pipe();
  const int number = pipe.near.get();
  const auto duplicate = copy(pipe.near);
  for (int round = 0; round < 10; ++round) {
    FdWatcher watcher(loop(), number, Events::read, [this](Events) { ++calls; });
    ASSERT_TRUE(watcher.start());
    run_iterations();
    test::write_to(pipe.far);
    calls = 0;
    ASSERT_TRUE(run_until([this] { return calls > 0; }));
    test::drain(duplicate);
    // In every second round, another file is watched under the number in between.
    watcher.stop();
    if (round % 2 != 0) {
      const auto other = test::open_pipe();
      ASSERT_EQ(::dup2(other.near.get(), number), number);
      watcher.set(number, Events::read);
      ASSERT_TRUE(watcher.start());
      run_iterations();
      watcher.stop();
    }
    ASSERT_EQ(::dup2(duplicate.get(), number), number);
  }
}

// A file gets its number back, and the kernel's registration differs from the current interest.
TEST_P(ReusedDescriptors, a_file_that_returns_to_its_number_is_watched_for_the_current_interest) {
  const auto former = test::open_socketpair();
  const auto latter = test::open_socketpair();
  const auto number = copy(former.near);
  FdWatcher watcher(loop(), number.get(), Events::urgent, [this](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  run_iterations();
  ASSERT_EQ(::dup2(latter.near.get(), number.get()), number.get());
  watcher.set(number.get(), Events::read);
  run_iterations();
  for (int round = 0; round < 3; ++round) {
    const auto& file = round % 2 == 0 ? former : latter;
    ASSERT_EQ(::dup2(file.near.get(), number.get()), number.get());
    watcher.set(number.get(), Events::read);
    run_iterations();
    calls = 0;
    test::write_to(file.far);
    ASSERT_TRUE(run_until([this] { return calls > 0; })) << "round " << round;
    test::drain(file.near);
  }
}

// The callback of A closes the descriptor of B, and C reuses the number, while B is due.
TEST_P(ReusedDescriptors, a_pending_event_does_not_reach_the_next_file_with_the_number) {
  for (int round = 0; round < 100; ++round) {
    struct Side {
      test::Ends pipe = test::open_pipe();
      std::optional<FdWatcher> watcher;
      int calls = 0;
    };
    std::vector<Side> sides(2);
    std::optional<test::Ends> reopened;
    int heirs = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      sides[i].watcher.emplace(loop(), sides[i].pipe.near.get(), Events::read, [&, i](Events) {
        ++sides[i].calls;
        if (reopened) return;
        Side& due = sides[1 - i];
        const int number = due.pipe.near.get();
        due.watcher.reset();
        due.pipe.near.reset(-1);
        reopened.emplace(open_pipe_at(number));
        due.watcher.emplace(loop(), number, Events::read, [&heirs](Events) { ++heirs; });
        ASSERT_TRUE(due.watcher->start());
      });
      ASSERT_TRUE(sides[i].watcher->start());
    }
    run_iterations(1);
    for (const Side& side : sides) test::write_to(side.pipe.far);
    run_iterations(3);
    EXPECT_EQ(heirs, 0);
    EXPECT_EQ(sides[0].calls == 0, sides[1].calls > 0) << "one of them was closed while due";
    test::write_to(reopened->far);
    run_iterations(1);
    EXPECT_EQ(heirs, 1);
  }
}

TEST_P(ReusedDescriptors, a_regular_file_and_a_pipe_alternate_under_one_number) {
  const auto file = test::open_regular_file();
  const auto pipe = test::open_pipe();
  const auto number = test::duplicate_above(file, 100);
  FdWatcher watcher(loop(), number.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  for (int round = 0; round < 20; ++round) {
    const bool regular = round % 2 == 0;
    ASSERT_GE(::dup2(regular ? file.get() : pipe.near.get(), number.get()), 0);
    watcher.set(number.get(), Events::read);
    calls = 0;
    run_iterations(3);
    EXPECT_EQ(calls, regular ? 3 : 0);
    if (regular) continue;
    test::write_to(pipe.far);
    run_iterations(1);
    EXPECT_EQ(calls, 1);
    test::drain(pipe.near);
  }
}

}  // namespace
}  // namespace tambour::reused_descriptors_test
