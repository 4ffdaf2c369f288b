// Process groups whose leader is a Process: the rest of a group after its leader has ended.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/children.h"
#include "events/heartbeat.h"
#include "support/files.h"
#include "support/process.h"

namespace tambour::process_groups_test {
namespace {

using namespace std::chrono_literals;
using Event = ChildStatus::Event;

/// A member of the group that ends only with SIGKILL, and one that any signal ends.
const std::string stubborn = "(trap '' TERM; exec sleep 1000) & ";
const std::string obedient = "sleep 1000 & ";

class ProcessGroups : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) continue;  // Of other suites.
    detail::events::Children::avoid_pidfds(GetParam());
  }
  void TearDown() override {
    detail::events::Children::avoid_pidfds(false);
    EXPECT_LE(::waitpid(-1, nullptr, WNOHANG | __WALL), 0) << "a zombie is left";
  }

  /// Runs `script` in a shell that leads a group. Returns when the script has printed a line, which
  /// is stored in `line`. The members of the group hold the output open.
  Process group_of(const std::string& script, ProcessOptions options = {}) {
    options.arguments = {"/bin/sh", "-c", script};
    if (options.group == ProcessGroup::inherited) options.group = ProcessGroup::new_group;
    options.output = Stdio::pipe();
    auto process = Process::spawn(loop, options);
    if (!process) std::abort();
    spawn(loop, [](EventLoop& running, PipeStream& from, std::string& to) -> Task<> {
      Buffer buffer;
      while (!buffer.to_string().contains('\n')) {
        const auto got = co_await from.read(buffer);
        if (!got || *got == 0) std::abort();
      }
      to = buffer.to_string();
      running.stop();
    }(loop, process->output(), line));
    loop.run();
    return std::move(*process);
  }

  ChildStatus status_of(Process& process) {
    std::optional<ChildStatus> status;
    spawn(loop, [](Process& awaited, std::optional<ChildStatus>& to) -> Task<> {
      const auto ended = co_await awaited.wait();
      if (ended) to = *ended;
    }(process, status));
    loop.run();
    EXPECT_TRUE(status.has_value());
    return status.value_or(ChildStatus());
  }

  /// Returns when no process of the group is left. If one is, the time limit of the test ends it.
  void await_end_of_group(PipeStream& output) {
    bool is_over = false;
    spawn(loop, [](PipeStream& from, bool& done) -> Task<> {
      Buffer buffer;
      for (;;) {
        const auto got = co_await from.read(buffer);
        if (!got || *got == 0) break;
      }
      done = true;
    }(output, is_over));
    loop.run();
    EXPECT_TRUE(is_over);
  }

  static bool is_zombie(pid_t pid) {
    siginfo_t info{};
    const int flags = WEXITED | WNOHANG | WNOWAIT;
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, flags) == 0 && info.si_pid == pid;
  }

  EventLoop loop;
  std::string line;
};

TEST_P(ProcessGroups, are_signalled_after_their_leader_has_been_awaited) {
  for (const ProcessGroup group : {ProcessGroup::new_group, ProcessGroup::session}) {
    Process process = group_of(obedient + "echo ready; exit 3", {.group = group});
    EXPECT_EQ(status_of(process).code, 3);
    EXPECT_FALSE(process.is_running());
    EXPECT_EQ(process.send_signal(SIGTERM).error(), system_error(ESRCH));
    EXPECT_EQ(process.send_signal_to_group(-1).error(), system_error(EINVAL));
    EXPECT_TRUE(process.send_signal_to_group(SIGTERM));
    await_end_of_group(process.output());
  }
}

TEST_P(ProcessGroups, leader_stays_a_zombie_until_its_process_is_destroyed) {
  pid_t pid = 0;
  {
    Process process = group_of("echo ready");
    pid = process.pid();
    EXPECT_TRUE(status_of(process).succeeded());
    EXPECT_TRUE(is_zombie(pid));
    EXPECT_EQ(test::in_child([&] {
                const Process destroyed = std::move(process);
                Process& other = const_cast<Process&>(destroyed);
                return other.send_signal_to_group(0).error() == system_error(ESRCH) ? 0 : 1;
              }),
              0);
    EXPECT_TRUE(is_zombie(pid));
  }
  EXPECT_FALSE(is_zombie(pid));
  Process released = group_of("echo ready");
  status_of(released);
  pid = released.release();
  EXPECT_FALSE(is_zombie(pid));
}

TEST_P(ProcessGroups, terminate_ends_members_that_outlive_the_leader) {
  Process process = group_of(stubborn + "echo ready; exec sleep 1000");
  process.terminate(10ms);
  EXPECT_EQ(status_of(process).code, SIGTERM);
  await_end_of_group(process.output());
  Process ended = group_of(stubborn + "echo ready");
  EXPECT_TRUE(status_of(ended).succeeded());
  ended.terminate(10ms);
  await_end_of_group(ended.output());
  Process at_once = group_of(stubborn + "echo ready");
  EXPECT_TRUE(status_of(at_once).succeeded());
  at_once.terminate(0s);
  await_end_of_group(at_once.output());
}

TEST_P(ProcessGroups, timeout_ends_members_that_outlive_the_leader) {
  // Waits for no output: the time limit may expire before the shell has written any.
  auto process = Process::spawn(loop, {.arguments = {"/bin/sh", "-c", stubborn + "exec sleep 1000"},
                                       .output = Stdio::pipe(),
                                       .group = ProcessGroup::new_group,
                                       .timeout = 100ms,
                                       .grace = 10ms});
  ASSERT_TRUE(process);
  EXPECT_EQ(status_of(*process).code, SIGTERM);
  EXPECT_TRUE(process->has_timed_out());
  await_end_of_group(process->output());
}

TEST_P(ProcessGroups, destroying_a_terminated_process_kills_the_rest) {
  std::optional<Process> process = group_of(stubborn + "echo ready; exec sleep 1000");
  process->terminate(1h);
  EXPECT_EQ(status_of(*process).code, SIGTERM);  // run() does not wait for the hour.
  PipeStream output = std::move(process->output());
  process.reset();
  await_end_of_group(output);
}

TEST_P(ProcessGroups, members_survive_a_leader_that_has_ended_by_itself) {
  std::optional<Process> process = group_of(obedient + "echo $!");
  pid_t member = 0;
  std::from_chars(line.data(), line.data() + line.size(), member);
  ASSERT_GT(member, 0);
  EXPECT_TRUE(status_of(*process).succeeded());
  PipeStream output = std::move(process->output());
  process.reset();
  EXPECT_EQ(::kill(member, SIGTERM), 0);
  await_end_of_group(output);
}

TEST_P(ProcessGroups, are_killed_when_the_leader_ends_if_the_option_is_set) {
  Process process = group_of(stubborn + "echo ready; exit 4", {.kill_group_at_exit = true});
  EXPECT_EQ(status_of(process).code, 4);
  EXPECT_FALSE(is_zombie(process.pid()));
  await_end_of_group(process.output());
  const auto refused = Process::spawn(loop, {.arguments = {"true"}, .kill_group_at_exit = true});
  EXPECT_EQ(refused.error(), system_error(EINVAL));
}

TEST_P(ProcessGroups, of_a_closed_loop_are_killed_as_a_whole) {
  auto local = std::make_optional<EventLoop>();
  auto pipe = test::open_pipe();
  const std::string script = stubborn + "echo ready; exec sleep 1000";
  auto process = Process::spawn(*local, {.arguments = {"/bin/sh", "-c", script},
                                         .output = Stdio::descriptor(pipe.far.get()),
                                         .group = ProcessGroup::new_group});
  ASSERT_TRUE(process);
  pollfd ready{.fd = pipe.near.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ready, 1, -1), 1);
  char first = 0;
  EXPECT_EQ(::read(pipe.near.get(), &first, 1), 1);
  local.reset();
  const pid_t pid = process->pid();
  *process = Process();
  PipeStream output(loop, ::dup(pipe.near.get()));
  pipe.far.reset(-1);
  await_end_of_group(output);
  int status = SIGKILL;
  EXPECT_TRUE(::waitpid(pid, &status, 0) == pid || errno == ECHILD);
}

TEST_P(ProcessGroups, several_watchers_get_the_status_of_a_leader) {
  Process process = group_of("echo ready; exec sleep 1000");
  std::vector<ChildStatus> seen;
  Child changes(
      loop, process.pid(), [&](const ChildStatus& status) { seen.push_back(status); },
      ChildChanges::all);
  ASSERT_TRUE(changes.start());
  const test::Heartbeat heartbeat(loop);
  for (const int number : {SIGSTOP, SIGCONT, SIGTERM}) {
    EXPECT_TRUE(process.send_signal_to_group(number));
    const std::size_t before = seen.size();
    while (seen.size() == before) loop.run_once();
  }
  loop.run_ready();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].event, Event::stopped);
  EXPECT_EQ(seen[1].event, Event::continued);
  EXPECT_EQ(seen[2].event, Event::signaled);
  while (process.is_running()) loop.run_once();
  EXPECT_EQ(process.status()->code, SIGTERM);
  Child late(loop, process.pid(), [&](const ChildStatus& status) { seen.push_back(status); });
  ASSERT_TRUE(late.start());
  while (late.is_started()) loop.run_once();
  EXPECT_EQ(seen.back().event, Event::signaled);
}

TEST_P(ProcessGroups, any_child_reaps_leaders_without_reporting_them) {
  for (const bool kills : {false, true}) {
    std::vector<pid_t> reported;
    Process process = group_of(obedient + "echo $!; exit 5", {.kill_group_at_exit = kills});
    pid_t member = 0;
    std::from_chars(line.data(), line.data() + line.size(), member);
    ASSERT_GT(member, 0);
    Child all(loop, any_child, [&](const ChildStatus& status) { reported.push_back(status.pid); });
    ASSERT_TRUE(all.start());
    const test::Heartbeat heartbeat(loop);
    const pid_t foreign_child = ::fork();
    if (foreign_child == 0) ::_exit(0);
    const auto is_done = [&] {
      return !process.is_running() && !reported.empty() && !is_zombie(process.pid());
    };
    while (!is_done()) loop.run_once();
    all.stop();
    EXPECT_EQ(process.status()->code, 5);
    EXPECT_EQ(reported, std::vector{foreign_child});
    EXPECT_FALSE(is_zombie(process.pid()));
    // Without the zombie, only Linux 6.9 and later can signal the group.
    if (!kills && !process.send_signal_to_group(SIGTERM)) ::kill(member, SIGTERM);
    await_end_of_group(process.output());
  }
}

INSTANTIATE_TEST_SUITE_P(Watched, ProcessGroups, testing::Bool(),
                         [](const auto& way) { return way.param ? "by_sigchld" : "by_pidfd"; });

}  // namespace
}  // namespace tambour::process_groups_test
