// Attributes of child processes beyond descriptors and groups, and the texts of their statuses.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/temporary_folder.h"

namespace tambour::process_attributes_test {
namespace {

using Event = ChildStatus::Event;

class ProcessAttributes : public testing::Test {
 protected:
  /// Runs a script of the shell and returns what it prints.
  std::string output_of(std::string script, ProcessOptions options) {
    options.arguments = {"/bin/sh", "-c", std::move(script)};
    options.output = Stdio::pipe();
    auto process = Process::spawn(loop, options);
    EXPECT_TRUE(process) << process.error().message();
    if (!process) return "";
    Buffer output;
    spawn(loop, [](PipeStream& from, Buffer& to) -> Task<> {
      for (;;) {
        const auto got = co_await from.read(to);
        if (!got || *got == 0) break;
      }
    }(process->output(), output));
    loop.run();
    EXPECT_TRUE(process->status() && process->status()->succeeded());
    return output.to_string();
  }

  Error error_of(ProcessOptions options) {
    options.arguments = {"true"};
    auto process = Process::spawn(loop, options);
    return process ? Error() : process.error();
  }

  EventLoop loop;
};

TEST_F(ProcessAttributes, umask_and_nice_value_are_those_of_the_options) {
  ProcessOptions options;
  options.umask = 0027;
  options.nice = 7;
  EXPECT_EQ(output_of("umask; nice", options), "0027\n7\n");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_NE(mask, 0027U);
  options.umask = 01000;
  EXPECT_EQ(error_of(options), system_error(EINVAL));
}

TEST_F(ProcessAttributes, lower_nice_value_needs_a_privilege) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can take another user's identity";
  ProcessOptions options;
  options.nice = -5;
  EXPECT_EQ(output_of("nice", options), "-5\n");
}

TEST_F(ProcessAttributes, subreaper_becomes_the_parent_of_orphans) {
  const std::string script =
      "pid=$(sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')\n"
      "parent=$(cut -d' ' -f4 /proc/$pid/stat)\nkill $pid\n"
      "test $parent = $$ && echo here || echo elsewhere";
  ProcessOptions options;
  EXPECT_EQ(output_of(script, options), "elsewhere\n");
  options.subreaper = true;
  EXPECT_EQ(output_of(script, options), "here\n");
}

TEST_F(ProcessAttributes, orphans_of_a_subreaper_are_reaped_by_any_child) {
  ASSERT_TRUE(set_child_subreaper(true));
  std::optional<ChildStatus> orphan;
  Child any(loop, any_child, [&](const ChildStatus& status) {
    orphan = status;
    loop.stop();
  });
  ASSERT_TRUE(any.start());
  const ProcessOptions options{.arguments = {"/bin/sh", "-c", "(read x; exit 9) <&0 & exit 0"},
                               .input = Stdio::pipe()};
  auto process = Process::spawn(loop, options);
  ASSERT_TRUE(process);
  // The child has ended before its own child, which waits for the end of its input.
  process->on_exit([&](const ChildStatus& status) {
    EXPECT_TRUE(status.succeeded()) << status.to_string();
    process->input().close();
  });
  loop.run();
  EXPECT_TRUE(set_child_subreaper(false));
  ASSERT_TRUE(orphan);
  EXPECT_EQ(orphan->to_string(), "exited with status 9");
}

TEST_F(ProcessAttributes, end_of_the_spawning_thread_sends_the_parent_death_signal) {
  pid_t pid = 0;
  std::thread([&] {
    EventLoop local;
    ProcessOptions options;
    options.arguments = {"sleep", "1000"};
    options.parent_death_signal = SIGUSR1;
    // The kernel clears the signal when the credentials change: it is set after them.
    if (::geteuid() == 0) options.credentials = ProcessCredentials{.user = 65534, .group = 65534};
    auto process = Process::spawn(local, options);
    EXPECT_TRUE(process) << process.error().message();
    if (process) pid = process->release();
  }).join();
  ASSERT_GT(pid, 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED), 0);
  EXPECT_EQ(info.si_code, CLD_KILLED);
  EXPECT_EQ(info.si_status, SIGUSR1);
  ProcessOptions wrong;
  wrong.parent_death_signal = 1000;
  EXPECT_EQ(error_of(wrong), system_error(EINVAL));
}

TEST_F(ProcessAttributes, child_writes_itself_to_the_control_group) {
  const test::TemporaryFolder folder;
  ProcessOptions options;
  options.cgroup = folder.path();
  EXPECT_EQ(error_of(options), system_error(ENOENT));
  // A regular file in place of the kernel's: the child must have written before it prints.
  const std::string procs = folder.path() + "/cgroup.procs";
  std::ofstream(procs).close();
  EXPECT_EQ(output_of("cat " + procs, options), "0");
  options.cgroup = std::string("/a\0b", 4);
  EXPECT_EQ(error_of(options), system_error(EINVAL));
}

TEST_F(ProcessAttributes, child_joins_a_real_control_group) {
  const std::string group = "/sys/fs/cgroup/tambour-test-" + std::to_string(::getpid());
  if (::mkdir(group.c_str(), 0755) != 0)
    GTEST_SKIP() << "control groups of version 2 cannot be created here";
  if (::access((group + "/cgroup.procs").c_str(), W_OK) != 0) {
    ::rmdir(group.c_str());
    GTEST_SKIP() << "/sys/fs/cgroup is not a control group of version 2";
  }
  ProcessOptions options;
  options.cgroup = group;
  const std::string line = output_of("grep 0:: /proc/self/cgroup", options);
  EXPECT_TRUE(line.ends_with(group.substr(group.rfind('/')) + "\n")) << line;
  EXPECT_EQ(::rmdir(group.c_str()), 0);
}

TEST(ChildStatusText, says_how_the_child_has_ended) {
  const auto text = [](Event event, int code, bool dumped_core = false) {
    return ChildStatus{.pid = 1, .event = event, .code = code, .dumped_core = dumped_core}
        .to_string();
  };
  EXPECT_EQ(text(Event::exited, 3), "exited with status 3");
  EXPECT_EQ(text(Event::signaled, SIGKILL), "killed by SIGKILL");
  EXPECT_EQ(text(Event::signaled, SIGSEGV, true), "killed by SIGSEGV (core dumped)");
  EXPECT_EQ(text(Event::signaled, SIGRTMIN), "killed by SIGRTMIN");
  EXPECT_EQ(text(Event::signaled, SIGRTMIN + 3), "killed by SIGRTMIN+3");
  EXPECT_EQ(text(Event::signaled, 32), "killed by signal 32");
  EXPECT_EQ(text(Event::stopped, SIGTSTP), "stopped by SIGTSTP");
  EXPECT_EQ(text(Event::continued, SIGCONT), "continued");
  EXPECT_EQ(text(Event::lost, ECHILD), "status lost: No child processes");
}

}  // namespace
}  // namespace tambour::process_attributes_test
