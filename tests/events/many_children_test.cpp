// Many children at once, several watchers of one child, and statuses that no watcher waits for.
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/child_processes.h"
#include "events/heartbeat.h"
#include "support/files.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::many_children_test {
namespace {

class ManyChildren : public ChildrenTest {};

TAMBOUR_ON_EVERY_BACKEND(ManyChildren);

TEST_P(ManyChildren, each_of_a_thousand_simultaneous_exits_is_reported_once) {
  const std::size_t count = test::sanitized ? 150 : 1000;
  both_ways([&] {
    auto go = test::open_pipe();
    std::vector<pid_t> others;
    std::map<pid_t, int> expected;
    std::vector<Child> children;
    for (std::size_t i = 0; i < count; ++i) {
      // Some children of other code, which exit at the same time.
      if (i % 50 == 0) others.push_back(fork_waiting(go, 99));
      const int status = static_cast<int>(i % 251);
      const pid_t pid = fork_waiting(go, status);
      expected[pid] = status;
      children.emplace_back(loop(), pid, note());
      ASSERT_TRUE(children.back().start());
    }
    go = {};
    loop().run();
    ASSERT_EQ(seen.size(), count);
    for (const ChildStatus& status : seen) {
      ASSERT_EQ(status.event, Event::exited);
      ASSERT_EQ(expected.at(status.pid), status.code);
      expected.erase(status.pid);
    }
    // The children of other code have not been reaped.
    for (const pid_t other : others) {
      int status = 0;
      ASSERT_EQ(::waitpid(other, &status, 0), other);
      EXPECT_EQ(WEXITSTATUS(status), 99);
    }
  });
}

TEST_P(ManyChildren, any_child_reaps_all_children_without_a_handle_of_their_own) {
  const std::size_t count = test::sanitized ? 100 : 500;
  both_ways([&] {
    auto go = test::open_pipe();
    std::map<pid_t, int> expected;
    std::vector<ChildStatus> named;
    std::vector<Child> children;
    for (std::size_t i = 0; i < count; ++i) {
      const int status = static_cast<int>(i % 251);
      const pid_t pid = fork_waiting(go, status);
      if (i % 3 == 0) {
        children.emplace_back(loop(), pid, [&](const ChildStatus& end) { named.push_back(end); });
        ASSERT_TRUE(children.back().start());
      } else {
        expected[pid] = status;
      }
    }
    const std::size_t unnamed = expected.size();
    Child all(loop(), any_child, note());
    EXPECT_EQ(all.pid(), 0);
    ASSERT_TRUE(all.start());
    Child second(loop(), any_child, note());
    EXPECT_EQ(second.start().error(), system_error(EBUSY));
    go = {};
    EXPECT_TRUE(
        run_until([&] { return seen.size() == unnamed && named.size() == children.size(); }));
    for (const ChildStatus& status : seen) {
      ASSERT_TRUE(expected.contains(status.pid));
      EXPECT_EQ(expected[status.pid], status.code);
      expected.erase(status.pid);
    }
    EXPECT_TRUE(all.is_started());
    all.stop();
    ASSERT_TRUE(second.start());
  });
}

TEST_P(ManyChildren, every_handle_of_a_child_is_invoked_on_every_loop) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 9);
    std::vector<Child> here;
    for (int i = 0; i < 3; ++i) here.emplace_back(loop(), pid, note());
    for (Child& child : here) ASSERT_TRUE(child.start());
    std::atomic<int> reported{0};
    std::atomic<int> ready{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        EventLoop local(options());
        const test::Heartbeat own_heartbeat(local);
        Child child(local, pid, [&reported](const ChildStatus& status) {
          if (status.event == Event::exited && status.code == 9) ++reported;
        });
        EXPECT_TRUE(child.start());
        ++ready;
        local.run();
      });
    }
    while (ready < 3) std::this_thread::yield();
    go = {};
    loop().run();
    threads.clear();
    EXPECT_EQ(reported, 3);
    EXPECT_EQ(seen.size(), 3U);
  });
}

// A supervisor whose workers exit as fast as it starts them: another status is always available.
TEST_P(ManyChildren, any_child_does_not_starve_the_loop) {
  constexpr std::size_t statuses_max = 100;
  const auto start_next = [] { await_zombie(fork_exiting(1)); };
  bool posted_ran = false;
  std::size_t seen_before_posted = 0;
  Child all(loop(), any_child, [&](const ChildStatus& status) {
    seen.push_back(status);
    if (seen.size() == 1) {
      loop().post([&] {
        posted_ran = true;
        seen_before_posted = seen.size();
      });
    }
    if (!posted_ran && seen.size() < statuses_max) start_next();
  });
  ASSERT_TRUE(all.start());
  for (int i = 0; i < 3; ++i) start_next();
  EXPECT_TRUE(run_until([&] { return posted_ran; }));
  EXPECT_LE(seen_before_posted, 3U);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST_P(ManyChildren, any_child_may_be_destroyed_in_its_callback) {
  auto go = test::open_pipe();
  std::vector<pid_t> pids;
  for (int i = 0; i < 5; ++i) pids.push_back(fork_waiting(go, 1));
  std::optional<Child> all;
  all.emplace(loop(), any_child, [&](const ChildStatus& status) {
    seen.push_back(status);
    if (seen.size() == 2) all.reset();
  });
  ASSERT_TRUE(all->start());
  go = {};
  EXPECT_TRUE(run_until([&] { return seen.size() == 2; }));
  run_iterations();
  EXPECT_EQ(seen.size(), 2U);
  // any_child may have taken one more status for its next callback, which was not invoked.
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
}

// Two children have exited: the status of the second is taken when the first is reported, and stays
// queued until the next iteration.
TEST_P(ManyChildren, a_forked_child_does_not_report_pending_exits_of_its_parent) {
  auto go = test::open_pipe();
  const pid_t pids[] = {fork_waiting(go, 1), fork_waiting(go, 2)};
  go = {};
  for (const pid_t pid : pids) await_zombie(pid);
  int status_of_fork = -1;
  Child all(loop(), any_child, [&](const ChildStatus& status) {
    seen.push_back(status);
    if (seen.size() != 1) return;
    status_of_fork = test::in_child([&] {
      if (!loop().after_fork()) return 1;
      run_iterations();
      return seen.size() == 1 ? 0 : 2;
    });
  });
  ASSERT_TRUE(all.start());
  EXPECT_TRUE(run_until([&] { return seen.size() == 2; }));
  EXPECT_EQ(status_of_fork, 0);
  EXPECT_NE(seen[0].pid, seen[1].pid);
}

TEST_P(ManyChildren, a_forked_child_has_children_of_its_own) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t sibling = fork_waiting(go, 6);
    Child child(loop(), sibling, note());
    ASSERT_TRUE(child.start());
    EXPECT_EQ(test::in_child([&] {
                if (!loop().after_fork()) return 1;
                // Until it has reported that the sibling is not a child of this process.
                loop().run();
                if (seen.size() != 1 || seen[0].event != Event::lost) return 2;
                Child grandchild(loop(), fork_exiting(7), note());
                Child all(loop(), any_child, note());
                if (!grandchild.start() || !all.start()) return 3;
                if (!run_until([&] { return seen.size() == 2; })) return 4;
                return seen[1].event == Event::exited && seen[1].code == 7 ? 0 : 5;
              }),
              0);
    go = {};
    loop().run();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].code, 6);
  });
}

}  // namespace
}  // namespace tambour::many_children_test
