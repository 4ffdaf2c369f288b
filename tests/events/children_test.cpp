// Children: each is reported once, with its status, by pidfd or by SIGCHLD;
// others are left alone.
#include "loop/children.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/heartbeat.h"
#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour {
namespace {

using Event = ChildStatus::Event;

/// A child that ends, with `status`, when `go` is closed, or is at its end.
pid_t fork_waiting(const test::Ends& go, int status) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(go.far.get());
  pollfd closed{.fd = go.near.get(), .events = POLLIN, .revents = 0};
  ::poll(&closed, 1, -1);
  ::_exit(status);
}

pid_t fork_exiting(int status) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(status);
  return child;
}

/// Waits until the child has ended, and leaves its status.
void await_zombie(pid_t child) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
}

/// Each promise is kept in both ways.
class Children : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    OnEveryBackend::SetUp();
    heartbeat.emplace(loop());
  }
  void TearDown() override {
    heartbeat.reset();
    loop::Children::avoid_pidfds(false);
    OnEveryBackend::TearDown();
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  }

  template <class F>
  void both_ways(F&& f) {
    for (const bool avoid : {false, true}) {
      SCOPED_TRACE(avoid ? "by SIGCHLD" : "by pidfd");
      loop::Children::avoid_pidfds(avoid);
      seen.clear();
      f();
    }
  }

  auto note() {
    return [this](const ChildStatus& status) { seen.push_back(status); };
  }

  std::vector<ChildStatus> seen;
  std::optional<test::Heartbeat> heartbeat;
};

TAMBOUR_ON_EVERY_BACKEND(Children);

TEST_P(Children, the_exit_status_is_told_once) {
  both_ways([this] {
    for (const int status : {0, 1, 77, 255}) {
      seen.clear();
      const pid_t pid = fork_exiting(status);
      Child child(loop(), pid, note());
      EXPECT_EQ(child.pid(), pid);
      ASSERT_TRUE(child.start());
      loop().run();  // Until it has stopped.
      ASSERT_EQ(seen.size(), 1U);
      EXPECT_EQ(seen[0].pid, pid);
      EXPECT_EQ(seen[0].event, Event::exited);
      EXPECT_EQ(seen[0].code, status);
      EXPECT_TRUE(seen[0].ended());
      EXPECT_FALSE(child.started());
    }
  });
}

TEST_P(Children, the_signal_that_ended_it_is_told) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 0);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    run_turns();
    EXPECT_TRUE(seen.empty());
    ::kill(pid, SIGKILL);
    loop().run();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].event, Event::signaled);
    EXPECT_EQ(seen[0].code, SIGKILL);
    EXPECT_FALSE(seen[0].dumped_core);
  });
}

TEST_P(Children, one_that_has_ended_before_the_start_is_told_too) {
  both_ways([this] {
    const pid_t pid = fork_exiting(3);
    await_zombie(pid);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    EXPECT_TRUE(seen.empty());
    loop().run();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].code, 3);
  });
}

TEST_P(Children, what_is_no_child_is_refused) {
  both_ways([this] {
    const pid_t gone = fork_exiting(0);
    ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
    const std::pair<pid_t, int> refused[] = {
        {gone, ECHILD}, {::getpid(), ECHILD}, {::getppid(), ECHILD}, {0, EINVAL}, {-1, EINVAL}};
    for (const auto& [pid, error] : refused) {
      Child child(loop(), pid, note());
      const auto started = child.start();
      ASSERT_FALSE(started);
      EXPECT_EQ(started.error(), system_error(error)) << pid;
      EXPECT_FALSE(child.started());
    }
    loop().run();
  });
}

TEST_P(Children, a_thousand_that_exit_at_once_are_each_told_once) {
  const std::size_t count = test::sanitized ? 150 : 1000;
  both_ways([&] {
    auto go = test::open_pipe();
    const pid_t stranger = fork_waiting(go, 99);
    std::map<pid_t, int> expected;
    std::vector<Child> children;
    for (std::size_t i = 0; i < count; ++i) {
      const int status = static_cast<int>(i % 251);
      const pid_t pid = fork_waiting(go, status);
      ASSERT_GT(pid, 0);
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
    // Other code's child is still there for it.
    int status = 0;
    ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
    EXPECT_EQ(WEXITSTATUS(status), 99);
  });
}

TEST_P(Children, any_child_takes_all_that_are_not_named) {
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
    EXPECT_TRUE(all.started());
    all.stop();
    ASSERT_TRUE(second.start());
  });
}

TEST_P(Children, stops_and_continuations_are_told_where_asked_for) {
  auto go = test::open_pipe();
  const pid_t pid = fork_waiting(go, 5);
  std::vector<ChildStatus> ends;
  Child all(loop(), pid, note(), ChildChanges::all);
  Child only_end(loop(), pid, [&ends](const ChildStatus& status) { ends.push_back(status); });
  ASSERT_TRUE(all.start());
  ASSERT_TRUE(only_end.start());
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(run_until([&] { return seen.size() == 1; }));
  EXPECT_EQ(seen.back().event, Event::stopped);
  EXPECT_EQ(seen.back().code, SIGSTOP);
  EXPECT_FALSE(seen.back().ended());
  ::kill(pid, SIGCONT);
  EXPECT_TRUE(run_until([&] { return seen.size() == 2; }));
  EXPECT_EQ(seen.back().event, Event::continued);
  EXPECT_TRUE(ends.empty());
  go = {};
  loop().run();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen.back().event, Event::exited);
  EXPECT_EQ(seen.back().code, 5);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends.back().code, 5);
}

TEST_P(Children, all_who_wait_for_one_child_are_told_in_whatever_loop) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 9);
    std::vector<Child> here;
    for (int i = 0; i < 3; ++i) here.emplace_back(loop(), pid, note());
    for (Child& child : here) ASSERT_TRUE(child.start());
    std::atomic<int> told{0};
    std::atomic<int> ready{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        EventLoop own(options());
        const test::Heartbeat own_heartbeat(own);
        Child child(own, pid, [&told](const ChildStatus& status) {
          if (status.event == Event::exited && status.code == 9) ++told;
        });
        EXPECT_TRUE(child.start());
        ++ready;
        own.run();
      });
    }
    while (ready < 3) std::this_thread::yield();
    go = {};
    loop().run();
    threads.clear();
    EXPECT_EQ(told, 3);
    EXPECT_EQ(seen.size(), 3U);
  });
}

TEST_P(Children, one_whose_status_went_elsewhere_is_lost) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 1);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    run_turns();
    go = {};
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    loop().run();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].event, Event::lost);
    EXPECT_EQ(seen[0].code, ECHILD);
    EXPECT_EQ(seen[0].pid, pid);
    EXPECT_TRUE(seen[0].ended());
  });
}

TEST_P(Children, where_sigchld_is_ignored_the_pidfd_still_tells_of_the_end) {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before{};
  ::sigaction(SIGCHLD, &ignore, &before);
  auto go = test::open_pipe();
  Child child(loop(), fork_waiting(go, 1), note());
  ASSERT_TRUE(child.start());
  go = {};
  // Under select, high numbers are watched by signal, which replaces the
  // disposition.
  EXPECT_TRUE(run_until([this] { return !seen.empty(); }));
  EXPECT_EQ(seen[0].event, Event::lost);
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST_P(Children, it_moves_and_is_destroyed_anywhere) {
  both_ways([this] {
    auto go = test::open_pipe();
    std::vector<std::unique_ptr<Child>> children(4);
    int calls = 0;
    for (auto& child : children) {
      child = std::make_unique<Child>(loop(), fork_waiting(go, 4), [&](const ChildStatus& status) {
        EXPECT_EQ(status.code, 4);
        ++calls;
        for (auto& each : children) {
          if (each) ::waitpid(each->pid(), nullptr, WNOHANG);
          each.reset();
        }
      });
      ASSERT_TRUE(child->start());
      auto elsewhere = std::make_unique<Child>(std::move(*child));
      child = std::move(elsewhere);
      EXPECT_TRUE(child->started());
    }
    std::vector<pid_t> pids;
    for (const auto& child : children) pids.push_back(child->pid());
    go = {};
    for (const pid_t pid : pids) await_zombie(pid);
    run_turns(10);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(loop().stats().references, 0);
    for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  });
}

TEST_P(Children, a_stopped_one_leaves_the_child_to_others) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 8);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    child.stop();
    EXPECT_FALSE(child.started());
    go = {};
    await_zombie(pid);
    run_turns();
    EXPECT_TRUE(seen.empty());
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WEXITSTATUS(status), 8);
  });
}

TEST_P(Children, any_child_may_be_destroyed_in_its_callback) {
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
  run_turns();
  EXPECT_EQ(seen.size(), 2U);
  // One more status may have been taken for the next call, which then did not
  // come.
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
}

TEST_P(Children, it_may_outlive_its_loop) {
  both_ways([this] {
    EventLoop own(options());
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 1);
    std::optional<Child> child;
    {
      EventLoop brief(options());
      child.emplace(brief, pid, note());
      ASSERT_TRUE(child->start());
    }
    EXPECT_FALSE(child->started());
    child.reset();
    go = {};
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_TRUE(seen.empty());
  });
}

TEST_P(Children, no_descriptor_is_left_and_none_is_needed) {
  const auto watch_one = [this] {
    Child child(loop(), fork_exiting(2), note());
    ASSERT_TRUE(child.start());
    loop().run();
  };
  both_ways([&] {
    watch_one();
    const std::size_t before = test::open_descriptors();
    watch_one();
    EXPECT_EQ(test::open_descriptors(), before);
  });
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  loop::Children::avoid_pidfds(false);
  seen.clear();
  // Up to the first that is free.
  const test::OpenFilesLimit none(static_cast<rlim_t>(test::open_eventfd().get()));
  watch_one();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].code, 2);
}

TEST_P(Children, a_forked_child_has_children_of_its_own) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t sibling = fork_waiting(go, 6);
    Child child(loop(), sibling, note());
    ASSERT_TRUE(child.start());
    EXPECT_EQ(test::in_child([&] {
                if (!loop().reopen_after_fork()) return 1;
                loop().run();  // Until it has told that the sibling is no child.
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
}  // namespace tambour
