// After fork(2), the parent's loop and the reopened loop of the child work independently.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::forking_test {
namespace {

using namespace std::chrono_literals;

class Forking : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  test::Ends other = test::open_pipe();
  int calls = 0;
  int expiries = 0;
  int edges = 0;

  std::optional<FdWatcher> watcher;
  std::optional<FdWatcher> edge;
  std::optional<Timer> timer;

  void SetUp() override {
    OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    watcher.emplace(loop(), pipe.near.get(), Events::read, [this](Events) {
      test::drain(pipe.near);
      ++calls;
    });
    edge.emplace(
        loop(), other.near.get(), Events::read, [this](Events) { ++edges; }, Trigger::edge);
    timer.emplace(loop(), [this] { ++expiries; });
    ASSERT_TRUE(watcher->start());
    ASSERT_TRUE(edge->start());
    timer->start(2ms, 2ms);
    run_iterations();
  }

  void TearDown() override {
    watcher.reset();
    edge.reset();
    timer.reset();
    OnEveryBackend::TearDown();
  }

  /// Exercises everything a loop can do, with the watchers started before the fork.
  bool works() {
    const int calls_before = calls;
    const int edges_before = edges;
    const int expiries_before = expiries;
    test::write_to(pipe.far);
    test::write_to(other.far);
    return run_until(
        [&] { return calls > calls_before && edges > edges_before && expiries > expiries_before; });
  }
};

TAMBOUR_ON_EVERY_BACKEND(Forking);

TEST_P(Forking, the_loop_works_in_the_child_and_in_the_parent) {
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              if (!works()) return 2;
              // A post from another thread wakes the loop.
              std::jthread poster([this] {
                std::this_thread::sleep_for(5ms);
                loop().post([this] { loop().stop(); });
              });
              timer->stop();
              loop().run();
              return 0;
            }),
            0);
  EXPECT_TRUE(works());
}

TEST_P(Forking, the_child_takes_nothing_from_the_parent) {
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              // Destroys all its own handles; files shared with the parent must not be affected.
              watcher.reset();
              edge.reset();
              timer.reset();
              run_iterations();
              destroy_loop();
              return 0;
            }),
            0);
  test::write_to(pipe.far);
  run_iterations(2);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(works());
}

TEST_P(Forking, an_event_for_the_parent_does_not_wake_the_child) {
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              watcher->stop();
              test::write_to(pipe.far);
              timer->stop();
              edge->stop();
              return sleeps_through(50ms) ? 0 : 2;
            }),
            0);
  run_iterations(2);
  EXPECT_EQ(calls, 1);
}

TEST_P(Forking, wakeups_of_the_child_do_not_reach_the_parent) {
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              for (int i = 0; i < 100; ++i) loop().wake();
              run_iterations();
              return 0;
            }),
            0);
  timer->stop();
  EXPECT_TRUE(sleeps_through(30ms));
}

TEST_P(Forking, a_change_not_yet_submitted_to_the_kernel_is_made_in_both_processes) {
  const auto third = test::open_pipe();
  int thirds = 0;
  FdWatcher late(loop(), third.near.get(), Events::read, [&](Events) {
    ++thirds;
    late.stop();
  });
  ASSERT_TRUE(late.start());
  watcher->stop();
  test::write_to(third.far);
  EXPECT_EQ(test::in_child([&] {
              if (!loop().after_fork()) return 1;
              test::write_to(pipe.far);
              return run_until([&] { return thirds == 1; }) && calls == 0 ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(run_until([&] { return thirds == 1; }));
  EXPECT_EQ(calls, 0);
}

TEST_P(Forking, children_of_children_work) {
  EXPECT_EQ(test::in_child([this] {
              if (!loop().after_fork()) return 1;
              const int grandchild = test::in_child([this] {
                if (!loop().after_fork()) return 3;
                return works() ? 0 : 4;
              });
              if (grandchild != 0) return grandchild;
              return works() ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(works());
}

// Daemons close all open descriptors. Descriptors opened later reuse those numbers.
TEST_P(Forking, a_loop_is_reopened_after_all_descriptors_were_closed) {
  EXPECT_EQ(test::in_child([this] {
              const auto close_all = [] {
                for (int fd = 3; fd < 256; ++fd) ::close(fd);
              };
              close_all();
              EventLoop loop(options());
              int calls_seen = 0;
              const auto count = [&calls_seen] { ++calls_seen; };
              Signal signal(loop, SIGUSR1, [&](int) { count(); });
              if (!signal.start()) return 1;
              loop.run_ready();
              close_all();
              if (!loop.after_fork()) return 2;
              const auto fresh = test::open_pipe();
              FdWatcher reader(loop, fresh.near.get(), Events::read, [&](Events) {
                test::drain(fresh.near);
                count();
              });
              if (!reader.start()) return 3;
              ::raise(SIGUSR1);
              test::write_to(fresh.far);
              for (int iteration = 0; iteration < 3; ++iteration) loop.run_ready();
              if (calls_seen != 2) return 4;
              std::jthread poster([&loop] { loop.post([&loop] { loop.stop(); }); });
              loop.run();
              return 0;
            }),
            0);
  EXPECT_TRUE(works());
}

TEST_P(Forking, several_loops_are_reopened_in_any_order_after_all_descriptors_were_closed) {
  for (const bool in_order : {true, false}) {
    EventLoop first(options());
    EventLoop second(options());
    int calls_seen = 0;
    Signal of_first(first, SIGUSR1, [&](int) { ++calls_seen; });
    Signal of_second(second, SIGUSR1, [&](int) { ++calls_seen; });
    ASSERT_TRUE(of_first.start());
    ASSERT_TRUE(of_second.start());
    first.run_ready();
    second.run_ready();
    EXPECT_EQ(test::in_child([&] {
                for (int fd = 3; fd < 256; ++fd) ::close(fd);
                if (!(in_order ? first : second).after_fork()) return 1;
                if (!(in_order ? second : first).after_fork()) return 2;
                ::raise(SIGUSR1);
                for (EventLoop* loop : {&first, &second}) {
                  for (int iteration = 0; iteration < 3; ++iteration) loop->run_ready();
                  std::jthread poster([loop] { loop->post([loop] { loop->stop(); }); });
                  loop->run();
                }
                return calls_seen == 2 ? 0 : 3;
              }),
              0);
  }
}

// If no descriptor is available, reopening fails and can be retried.
TEST_P(Forking, reopening_can_fail_and_be_repeated) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  EXPECT_EQ(test::in_child([this] {
              const std::size_t open = test::open_descriptors();
              {
                // With RLIMIT_NOFILE at 0, a descriptor that was closed cannot be replaced either.
                const test::OpenFilesLimit limit(0);
                for (int i = 0; i < 3; ++i) {
                  const auto reopened = loop().after_fork();
                  if (reopened) return 1;
                  if (reopened.error() != system_error(EMFILE)) return 2;
                }
              }
              if (!loop().after_fork()) return 3;
              if (test::open_descriptors() != open) return 4;
              return works() ? 0 : 5;
            }),
            0);
  EXPECT_TRUE(works());
}

}  // namespace
}  // namespace tambour::forking_test
