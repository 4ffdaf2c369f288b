// Child watchers: each child is reported once, with its status, by pidfd or by SIGCHLD; other
// children are left alone.
#include "events/children.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/child_processes.h"
#include "support/files.h"
#include "support/process.h"

namespace tambour::children_test {
namespace {

class Children : public ChildrenTest {};

TAMBOUR_ON_EVERY_BACKEND(Children);

TEST_P(Children, the_exit_status_is_reported_once) {
  both_ways([this] {
    for (const int status : {0, 1, 77, 255}) {
      seen.clear();
      const pid_t pid = fork_exiting(status);
      Child child(loop(), pid, note());
      EXPECT_EQ(child.pid(), pid);
      ASSERT_TRUE(child.start());
      loop().run();  // Returns once the watcher has stopped.
      ASSERT_EQ(seen.size(), 1U);
      EXPECT_EQ(seen[0].pid, pid);
      EXPECT_EQ(seen[0].event, Event::exited);
      EXPECT_EQ(seen[0].code, status);
      EXPECT_TRUE(seen[0].has_ended());
      EXPECT_FALSE(child.is_started());
    }
  });
}

TEST_P(Children, the_signal_that_killed_the_child_is_reported) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 0);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    run_iterations();
    EXPECT_TRUE(seen.empty());
    ::kill(pid, SIGKILL);
    loop().run();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].event, Event::signaled);
    EXPECT_EQ(seen[0].code, SIGKILL);
    EXPECT_FALSE(seen[0].dumped_core);
  });
}

TEST_P(Children, a_child_that_exited_before_start_is_reported) {
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

TEST_P(Children, start_fails_for_a_pid_that_is_not_a_child) {
  both_ways([this] {
    const pid_t reaped = fork_exiting(0);
    ASSERT_EQ(::waitpid(reaped, nullptr, 0), reaped);
    const std::pair<pid_t, int> refused[] = {
        {reaped, ECHILD}, {::getpid(), ECHILD}, {::getppid(), ECHILD}, {0, EINVAL}, {-1, EINVAL}};
    for (const auto& [pid, error] : refused) {
      Child child(loop(), pid, note());
      const auto started = child.start();
      ASSERT_FALSE(started);
      EXPECT_EQ(started.error(), system_error(error)) << pid;
      EXPECT_FALSE(child.is_started());
    }
    loop().run();
  });
}

TEST_P(Children, stops_and_continuations_are_reported_on_request) {
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
  EXPECT_FALSE(seen.back().has_ended());
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

TEST_P(Children, a_child_that_the_program_reaped_is_reported_as_lost) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 1);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    run_iterations();
    go = {};
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    loop().run();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].event, Event::lost);
    EXPECT_EQ(seen[0].code, ECHILD);
    EXPECT_EQ(seen[0].pid, pid);
    EXPECT_TRUE(seen[0].has_ended());
  });
}

TEST_P(Children, the_exit_is_reported_even_if_sigchld_is_ignored) {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before{};
  ::sigaction(SIGCHLD, &ignore, &before);
  auto go = test::open_pipe();
  Child child(loop(), fork_waiting(go, 1), note());
  ASSERT_TRUE(child.start());
  go = {};
  // With select(2), a high pidfd cannot be watched; SIGCHLD is used instead, which replaces the
  // disposition.
  EXPECT_TRUE(run_until([this] { return !seen.empty(); }));
  EXPECT_EQ(seen[0].event, Event::lost);
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST_P(Children, a_child_handle_may_be_moved_and_destroyed_anywhere) {
  both_ways([this] {
    auto go = test::open_pipe();
    std::vector<std::unique_ptr<Child>> children(4);
    int calls = 0;
    for (auto& child : children) {
      child = std::make_unique<Child>(loop(), fork_waiting(go, 4), [&](const ChildStatus& status) {
        EXPECT_EQ(status.code, 4);
        ++calls;
        for (auto& entry : children) {
          if (entry) ::waitpid(entry->pid(), nullptr, WNOHANG);
          entry.reset();
        }
      });
      ASSERT_TRUE(child->start());
      auto elsewhere = std::make_unique<Child>(std::move(*child));
      child = std::move(elsewhere);
      EXPECT_TRUE(child->is_started());
    }
    std::vector<pid_t> pids;
    for (const auto& child : children) pids.push_back(child->pid());
    go = {};
    for (const pid_t pid : pids) await_zombie(pid);
    run_iterations(10);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(loop().stats().references, 0);
    for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  });
}

TEST_P(Children, a_stopped_handle_does_not_reap_the_child) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 8);
    Child child(loop(), pid, note());
    ASSERT_TRUE(child.start());
    child.stop();
    EXPECT_FALSE(child.is_started());
    go = {};
    await_zombie(pid);
    run_iterations();
    EXPECT_TRUE(seen.empty());
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WEXITSTATUS(status), 8);
  });
}

TEST_P(Children, a_child_handle_may_outlive_its_loop) {
  both_ways([this] {
    EventLoop loop(options());
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 1);
    std::optional<Child> child;
    {
      EventLoop brief(options());
      child.emplace(brief, pid, note());
      ASSERT_TRUE(child->start());
    }
    EXPECT_FALSE(child->is_started());
    child.reset();
    go = {};
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_TRUE(seen.empty());
  });
}

TEST_P(Children, a_handle_assigned_from_another_invokes_the_new_callback) {
  both_ways([this] {
    auto go = test::open_pipe();
    const pid_t pid = fork_waiting(go, 4);
    const pid_t other = fork_waiting(go, 5);
    Child child(loop(), pid, note());
    Child target(loop(), other, note());
    ASSERT_TRUE(child.start());
    ASSERT_TRUE(target.start());
    target = std::move(child);
    EXPECT_TRUE(target.is_started());
    int code = 0;
    target.set_function([&code](const ChildStatus& status) { code = status.code; });
    go = {};
    loop().run();
    EXPECT_EQ(code, 4);
    EXPECT_TRUE(seen.empty()) << "the handle no longer waits for the other child";
    ASSERT_EQ(::waitpid(other, nullptr, 0), other);
  });
}

TEST_P(Children, no_descriptor_is_leaked_and_none_is_required) {
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
  detail::events::Children::avoid_pidfds(false);
  seen.clear();
  // Allows no new descriptor: the lowest free number is the limit.
  const test::OpenFilesLimit none(static_cast<rlim_t>(test::open_eventfd().get()));
  watch_one();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].code, 2);
}

}  // namespace
}  // namespace tambour::children_test
