// Child processes: what they inherit, how they end, and that nothing leaks.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "events/children.h"
#include "events/heartbeat.h"
#include "process/process_state.h"
#include "support/files.h"
#include "support/process.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::processes_test {
namespace {

using namespace std::chrono_literals;
using Event = ChildStatus::Event;

std::vector<std::string> shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }

class Processes : public testing::Test {
 protected:
  void TearDown() override {
    detail::events::Children::avoid_pidfds(false);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1) << "a child is left";
  }

  Process spawned(const ProcessOptions& options) {
    auto process = Process::spawn(loop, options);
    if (!process) {
      ADD_FAILURE() << process.error().message();
      std::abort();
    }
    return std::move(*process);
  }

  Error error_of(const ProcessOptions& options) {
    auto process = Process::spawn(loop, options);
    return process ? Error() : process.error();
  }

  /// Runs the loop until the process has ended.
  ChildStatus end_of(Process& process) {
    std::optional<ChildStatus> status;
    spawn(loop, [](Process& awaited, std::optional<ChildStatus>& to) -> Task<> {
      const auto ended = co_await awaited.wait();
      if (ended) to = *ended;
    }(process, status));
    loop.run();
    EXPECT_TRUE(status.has_value());
    return status.value_or(ChildStatus());
  }

  ChildStatus end_of(const ProcessOptions& options) {
    Process process = spawned(options);
    return end_of(process);
  }

  static Task<> read_all(PipeStream& from, std::string& to) {
    Buffer buffer;
    for (;;) {
      const auto got = co_await from.read(buffer);
      if (!got || *got == 0) break;
    }
    to = buffer.to_string();
  }

  std::string output_of(ProcessOptions options) {
    options.output = Stdio::pipe();
    Process process = spawned(options);
    std::string text;
    spawn(loop, read_all(process.output(), text));
    EXPECT_TRUE(end_of(process).succeeded());
    return text;
  }

  /// A process that runs until it is killed. Returns once its signal traps are installed.
  Process endless(const std::string& before, ProcessOptions options = {}) {
    options.arguments = shell(before + "\necho ready\nexec sleep 1000");
    options.output = Stdio::pipe();
    Process process = spawned(options);
    spawn(loop, [](EventLoop& local, PipeStream& from) -> Task<> {
      std::array<std::byte, 6> ready;
      EXPECT_EQ(co_await from.read(ready), ready.size());
      local.stop();
    }(loop, process.output()));
    loop.run();
    return process;
  }

  /// Declare it before the loop: its destructor checks that no descriptor was leaked.
  struct NoDescriptorIsLeft {
    std::size_t before = test::open_descriptors();
    NoDescriptorIsLeft() = default;
    NoDescriptorIsLeft(const NoDescriptorIsLeft&) = delete;
    NoDescriptorIsLeft& operator=(const NoDescriptorIsLeft&) = delete;
    ~NoDescriptorIsLeft() { EXPECT_EQ(test::open_descriptors(), before); }
  } no_descriptor_is_left;
  EventLoop loop;
};

TEST_F(Processes, streams_are_pipes) {
  ProcessOptions options{.arguments = shell("cat; echo error >&2; exit 3")};
  options.input = options.output = options.error_output = Stdio::pipe();
  Process process = spawned(options);
  EXPECT_GT(process.pid(), 0);
  EXPECT_TRUE(process.is_running());
  std::string output;
  std::string errors;
  spawn(loop, read_all(process.output(), output));
  spawn(loop, read_all(process.error_output(), errors));
  spawn(loop, [](PipeStream& to) -> Task<> {
    EXPECT_TRUE(co_await to.write("words"));
    to.close();
  }(process.input()));
  const ChildStatus status = end_of(process);
  EXPECT_EQ(status.event, Event::exited);
  EXPECT_EQ(status.code, 3);
  EXPECT_EQ(status.pid, process.pid());
  EXPECT_FALSE(status.succeeded());
  EXPECT_EQ(output, "words");
  EXPECT_EQ(errors, "error\n");
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(process.status()->code, 3);
  EXPECT_EQ(process.send_signal(SIGTERM).error(), system_error(ESRCH));
  process.terminate();
}

TEST_F(Processes, streams_are_null_or_descriptors) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/both";
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(end_of({.arguments = shell("cat; echo one; echo two >&2"),
                      .input = Stdio::null(),
                      .output = Stdio::descriptor(file.get()),
                      .error_output = Stdio::same_as_output()})
                  .succeeded());
  std::array<char, 16> bytes{};
  EXPECT_EQ(::pread(file.get(), bytes.data(), bytes.size(), 0), 8);
  EXPECT_STREQ(bytes.data(), "one\ntwo\n");
  EXPECT_EQ(error_of({.arguments = {"true"}, .input = Stdio::same_as_output()}),
            system_error(EINVAL));
  EXPECT_EQ(error_of({.arguments = {"true"}, .output = Stdio::descriptor(999)}),
            system_error(EBADF));
}

TEST_F(Processes, failures_carry_the_error_of_the_failing_step) {
  EXPECT_EQ(error_of({.arguments = {"/no/such/program"}}), system_error(ENOENT));
  EXPECT_EQ(error_of({.arguments = {"no-such-program-in-the-path"}}), system_error(ENOENT));
  EXPECT_EQ(error_of({.arguments = {"/"}}), system_error(EACCES));
  EXPECT_EQ(error_of({.arguments = {"true"}, .working_directory = "/no/such"}),
            system_error(ENOENT));
  EXPECT_EQ(error_of({.arguments = {}}), system_error(EINVAL));
  EXPECT_EQ(error_of({.arguments = {std::string("a\0b", 3)}}), system_error(EINVAL));
  EXPECT_EQ(error_of({.arguments = {"true"}, .descriptors = {{.fd = 1, .as = 2}}}),
            system_error(EINVAL));
  EXPECT_EQ(error_of({.arguments = {"true"}, .descriptors = {{.fd = 999, .as = 3}}}),
            system_error(EBADF));
  EXPECT_EQ(error_of({.arguments = {"true"}, .limits = {{.resource = -1}}}), system_error(EINVAL));
}

TEST_F(Processes, program_is_looked_for_in_path_unless_it_has_a_slash) {
  EXPECT_TRUE(end_of({.arguments = {"true"}}).succeeded());
  EXPECT_EQ(output_of({.arguments = {"called so", "-c", "echo $0"}, .program = "sh"}),
            "called so\n");
}

TEST_F(Processes, environment_and_directory_are_given) {
  EXPECT_EQ(output_of({.arguments = shell("echo $A-$B; pwd; test $ME = $$"),
                       .environment = std::vector<std::string>{"A=one", "B=two"},
                       .pid_variable = "ME",
                       .working_directory = "/"}),
            "one-two\n/\n");
  ::setenv("TAMBOUR_TEST_PROCESSES", "inherited", 1);
  EXPECT_EQ(output_of({.arguments = shell("echo $TAMBOUR_TEST_PROCESSES")}), "inherited\n");
  ::unsetenv("TAMBOUR_TEST_PROCESSES");
}

TEST_F(Processes, descriptors_that_are_not_passed_are_closed) {
  const auto pipe = test::open_pipe();
  // A descriptor of other code, without close-on-exec.
  const UniqueFd other(::fcntl(pipe.far.get(), F_DUPFD, 77));
  const std::string no_other = "! test -e /proc/$$/fd/" + std::to_string(other.get());
  // Swaps two descriptors: neither may overwrite the other.
  const UniqueFd low(::fcntl(pipe.near.get(), F_DUPFD_CLOEXEC, 20));
  const UniqueFd high(::fcntl(pipe.far.get(), F_DUPFD_CLOEXEC, 21));
  const std::string swapped = "/proc/$$/fd/" + std::to_string(low.get());
  ProcessOptions options{
      .arguments = shell(no_other + " && test -p /proc/$$/fd/3 && echo word >" + swapped)};
  options.descriptors = {{.fd = high.get(), .as = low.get()}, {.fd = low.get(), .as = 3}};
  EXPECT_TRUE(end_of(options).succeeded());
  std::array<char, 8> bytes{};
  EXPECT_EQ(::read(pipe.near.get(), bytes.data(), bytes.size()), 5);
}

TEST_F(Processes, descriptors_are_passed_as_any_number_below_the_limit) {
  const auto pipe = test::open_pipe();
  const int fd = pipe.near.get();
  constexpr int limit = 256;
  const test::OpenFilesLimit lower(limit);
  EXPECT_TRUE(end_of({.arguments = shell("test -p /proc/$$/fd/255 && test -p /proc/$$/fd/3"),
                      .descriptors = {{.fd = fd, .as = limit - 1}, {.fd = fd, .as = 3}}})
                  .succeeded());
  for (const int as : {limit, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(error_of({.arguments = {"true"}, .descriptors = {{.fd = fd, .as = as}}}),
              system_error(EINVAL));
  }
}

std::uint64_t signals_in(const std::string& status, const std::string& field) {
  const std::size_t at = status.find(field);
  std::uint64_t set = ~std::uint64_t{0};
  if (at != std::string::npos) {
    const char* const first = status.data() + at + field.size();
    std::from_chars(first, first + 16, set, 16);
  }
  return set;
}

TEST_F(Processes, signals_are_neither_blocked_nor_ignored) {
  sigset_t some;
  sigset_t before;
  sigemptyset(&some);
  sigaddset(&some, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &some, &before);
  const auto former = std::signal(SIGHUP, SIG_IGN);
  ProcessOptions options{.arguments = {"cat", "/proc/self/status"}};
  std::string status = output_of(options);
  EXPECT_EQ(signals_in(status, "SigBlk:\t"), 0U);
  EXPECT_EQ(signals_in(status, "SigIgn:\t"), 0U);
  options.keep_ignored_signals = true;
  status = output_of(options);
  EXPECT_NE(signals_in(status, "SigIgn:\t") & (1U << (SIGHUP - 1)), 0U);
  std::signal(SIGHUP, former);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(Processes, started_in_a_storm_of_signals_leave_the_parent_its_signals) {
  int received = 0;
  Signal signal(loop, SIGUSR1, [&](int) { ++received; });
  const test::Heartbeat heartbeat(loop);
  ASSERT_TRUE(signal.start());
  std::atomic<bool> over{false};
  std::jthread sender([&] {
    while (!over) ::kill(::getpid(), SIGUSR1);
  });
  for (int i = 0; i < 30; ++i) {
    Process process = spawned({.arguments = {"/bin/true"}});
    while (process.is_running()) loop.run_once();
    EXPECT_TRUE(process.status()->succeeded());
  }
  over = true;
  sender.join();
  loop.run_ready();
  const int before = received;
  ::raise(SIGUSR1);
  while (received == before) loop.run_once();
}

TEST_F(Processes, limits_and_credentials_are_set) {
  EXPECT_EQ(output_of({.arguments = shell("ulimit -n"),
                       .limits = {{.resource = RLIMIT_NOFILE, .soft = 17, .hard = 17}}}),
            "17\n");
  ProcessOptions options{.arguments = shell("id -u; id -g")};
  options.credentials = {.user = 65534, .group = 65533};
  if (::geteuid() == 0) {
    EXPECT_EQ(output_of(options), "65534\n65533\n");
  } else {
    EXPECT_EQ(error_of(options), system_error(EPERM));
  }
}

TEST_F(Processes, group_and_session_are_signalled_as_a_whole) {
  for (const ProcessGroup group : {ProcessGroup::new_group, ProcessGroup::session}) {
    Process process = endless("sleep 1000 &", {.group = group});
    EXPECT_EQ(::getpgid(process.pid()), process.pid());
    EXPECT_EQ(::getsid(process.pid()) == process.pid(), group == ProcessGroup::session);
    EXPECT_TRUE(process.send_signal_to_group(SIGTERM));
    EXPECT_EQ(end_of(process).code, SIGTERM);
    // EOF on the output: no process of the group holds it open.
    std::string rest;
    spawn(loop, read_all(process.output(), rest));
    loop.run();
  }
  Process process = endless(":");
  EXPECT_EQ(process.send_signal_to_group(SIGTERM).error(), system_error(EINVAL));
  EXPECT_TRUE(process.send_signal(SIGINT));
  EXPECT_EQ(end_of(process).code, SIGINT);
}

TEST_F(Processes, terminate_kills_a_process_that_does_not_exit_in_time) {
  Process stubborn = endless("trap '' TERM");
  stubborn.terminate(10ms);
  const ChildStatus killed = end_of(stubborn);
  EXPECT_EQ(killed.event, Event::signaled);
  EXPECT_EQ(killed.code, SIGKILL);
  EXPECT_FALSE(stubborn.has_timed_out());
  Process obedient = endless(":");
  obedient.terminate(1h);
  EXPECT_EQ(end_of(obedient).code, SIGTERM);
  Process at_once = endless("trap '' TERM");
  at_once.terminate(0s);
  EXPECT_EQ(end_of(at_once).code, SIGKILL);
}

TEST_F(Processes, timeout_terminates) {
  Process process = spawned({.arguments = {"sleep", "1000"}, .timeout = 5ms});
  EXPECT_EQ(end_of(process).code, SIGTERM);
  EXPECT_TRUE(process.has_timed_out());
  Process stubborn = spawned({.arguments = shell("trap '' TERM; while :; do sleep 1000; done"),
                              .group = ProcessGroup::new_group,
                              .timeout = 5ms,
                              .grace = 5ms});
  EXPECT_EQ(end_of(stubborn).event, Event::signaled);
  EXPECT_TRUE(stubborn.has_timed_out());
  Process brief = spawned({.arguments = {"true"}, .timeout = 1h});
  EXPECT_TRUE(end_of(brief).succeeded());  // run() does not wait for the timeout timer.
  EXPECT_FALSE(brief.has_timed_out());
}

TEST_F(Processes, destroyed_while_it_runs_is_killed_and_reaped) {
  for (const bool avoid : {false, true}) {
    detail::events::Children::avoid_pidfds(avoid);
    const test::Heartbeat heartbeat(loop);
    pid_t pid = 0;
    {
      const Process process = endless("trap '' TERM");
      pid = process.pid();
    }
    while (::kill(pid, 0) == 0) loop.run_once();
  }
  Process replaced = endless(":");
  replaced = spawned({.arguments = {"true"}});
  EXPECT_TRUE(end_of(replaced).succeeded());
}

TEST_F(Processes, outlives_its_loop_and_is_killed_then) {
  pid_t pid = 0;
  {
    std::optional<Process> process;
    EventLoop local;
    process = Process::spawn(local, {.arguments = {"sleep", "1000"}}).value();
    pid = process->pid();
    // The loop is destroyed before the process handle.
    std::optional<Process> later = std::move(process);
    process.reset();
    spawn(local, [](std::optional<Process> held) -> Task<> {
      static_cast<void>(co_await sleep_for(1h));
      held.reset();
    }(std::move(later)));
  }
  // Killed when its task is destroyed. If it terminated at once, it has been reaped as well
  // (ECHILD).
  int status = SIGKILL;
  EXPECT_TRUE(::waitpid(pid, &status, 0) == pid || errno == ECHILD);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  auto short_lived = std::make_optional<EventLoop>();
  Process process = Process::spawn(*short_lived, {.arguments = {"sleep", "1000"}}).value();
  short_lived.reset();
  EXPECT_TRUE(process.send_signal(SIGINT));
  EXPECT_EQ(::waitpid(process.pid(), &status, 0), process.pid());
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST_F(Processes, forked_copy_of_the_parent_leaves_the_child_alone) {
  std::optional<Process> process = endless(":");
  EXPECT_EQ(test::in_child([&] {
              const bool refused = process->send_signal(SIGKILL).error() == system_error(ESRCH);
              process.reset();
              return refused ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(process->send_signal(SIGINT));
  EXPECT_EQ(end_of(*process).code, SIGINT);
}

TEST_F(Processes, are_awaited_by_several_tasks_and_waits_can_be_stopped) {
  Process process = endless(":");
  std::vector<Error> outcomes;
  const auto wait_for = [](Process& awaited, std::vector<Error>& to) -> Task<> {
    const auto ended = co_await awaited.wait();
    to.push_back(ended ? Error() : ended.error());
  };
  {
    TaskScope scope(loop);
    scope.spawn(wait_for(process, outcomes));
    scope.request_stop();
    loop.run_once();
    EXPECT_EQ(outcomes, std::vector{system_error(ECANCELED)});
    scope.spawn(wait_for(process, outcomes));  // The stop was requested before.
    loop.run_once();
    EXPECT_EQ(outcomes.size(), 2U);
  }
  outcomes.clear();
  spawn(loop, wait_for(process, outcomes));
  spawn(loop, wait_for(process, outcomes));
  process.terminate();
  EXPECT_EQ(end_of(process).code, SIGTERM);
  EXPECT_EQ(outcomes, std::vector<Error>(2));
  spawn(loop, wait_for(process, outcomes));  // It has already ended, so there is no wait.
  EXPECT_EQ(outcomes.size(), 3U);

  std::optional<Process> destroyed = endless(":");
  outcomes.clear();
  spawn(loop, wait_for(*destroyed, outcomes));
  destroyed.reset();
  loop.run();
  EXPECT_EQ(outcomes, std::vector{system_error(ECANCELED)});
}

TEST_F(Processes, callbacks_may_destroy_them) {
  std::optional<Process> process = spawned({.arguments = shell("exit 4")});
  std::vector<int> codes;
  const std::string not_small(100, 'x');
  process->on_exit([&, not_small](const ChildStatus& status) {
    process.reset();
    codes.push_back(status.code + int(not_small.size()) - 100);
  });
  loop.run();
  process = spawned({.arguments = shell("exit 5")});
  end_of(*process);
  process->on_exit([&](const ChildStatus& status) { codes.push_back(status.code); });
  loop.run();
  EXPECT_EQ(codes, (std::vector{4, 5}));
}

TEST_F(Processes, callback_set_after_the_exit_may_destroy_its_process) {
  std::optional<Process> process = spawned({.arguments = shell("exit 5")});
  end_of(*process);
  int code = 0;
  process->on_exit([&](const ChildStatus& status) {
    process.reset();
    // Likely to reuse the memory of the destroyed process.
    const std::vector<unsigned char> others(sizeof(detail::process::ProcessState), 0xff);
    code = status.code + int(others.back()) - 0xff;
  });
  loop.run();
  EXPECT_EQ(code, 5);
}

TEST_F(Processes, task_that_destroys_its_scope_after_a_wait_aborts_with_a_message) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Process process = spawned({.arguments = {"true"}});
        auto scope = std::make_unique<TaskScope>(loop);
        scope->spawn([](Process& awaited, std::unique_ptr<TaskScope>& local) -> Task<> {
          static_cast<void>(co_await awaited.wait());
          local.reset();
        }(process, scope));
        loop.run();
      },
      "destroyed by that task itself while it was running");
}

// Each status goes to its Process, however soon the child exits, and none to `any_child`.
TEST_F(Processes, any_child_on_another_thread_does_not_reap_processes) {
  const int count = test::sanitized ? 30 : 200;
  std::atomic<bool> ready{false};
  std::atomic<int> taken{0};
  std::atomic<EventLoop*> other{nullptr};
  std::jthread thread([&] {
    EventLoop thread_loop;
    const test::Heartbeat heartbeat(thread_loop);
    Child all(thread_loop, any_child, [&](const ChildStatus&) { ++taken; });
    EXPECT_TRUE(all.start());
    other = &thread_loop;
    ready = true;
    thread_loop.run();
  });
  while (!ready) std::this_thread::yield();
  for (int i = 0; i < count; ++i) {
    Process process = spawned({.arguments = {"/bin/true"}});
    EXPECT_TRUE(end_of(process).succeeded());
  }
  // A child without a Process is still taken by any_child.
  const pid_t foreign_child = ::fork();
  if (foreign_child == 0) ::_exit(0);
  while (taken == 0) std::this_thread::yield();
  EXPECT_EQ(taken, 1);
  other.load()->post([&] { other.load()->stop(); });
}

TEST_F(Processes, a_released_process_is_reaped_by_the_caller) {
  Process process = spawned({.arguments = shell("exit 6")});
  const pid_t pid = process.release();
  EXPECT_EQ(process.pid(), 0);
  EXPECT_FALSE(process.is_running());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

TEST_F(Processes, need_a_real_kernel) {
  sim::Simulation simulation(1);
  EventLoop simulated(simulation.add_host("one").loop_options());
  EXPECT_EQ(Process::spawn(simulated, {.arguments = {"true"}}).error(), system_error(ENOTSUP));
}

}  // namespace
}  // namespace tambour::processes_test
