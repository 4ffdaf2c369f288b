// Failures during a hand-off must not harm other processes or descriptors.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/process/inherited_listeners.h>
#include <tambour/tambour.h>

#include "events/heartbeat.h"
#include "support/files.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace tambour::successor_test {
namespace {

using namespace std::chrono_literals;

// `any_child` must not take its status, or the pid could be reused before it is killed.
TEST(Successor, that_fails_is_reaped_by_its_own_watcher) {
  EventLoop loop;
  const test::Heartbeat heartbeat(loop);
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  std::vector<ChildStatus> seen;
  Child all(loop, any_child, [&](const ChildStatus& status) { seen.push_back(status); });
  ASSERT_TRUE(all.start());
  loop.unref();
  for (int round = 0; round < 10; ++round) {
    Result<pid_t> outcome;
    spawn(loop, [](TcpServer& passed, Result<pid_t>& to) -> Task<> {
      const std::vector<PassedListener> listeners{{&passed, "web"}};
      const NewProcessOptions options{.arguments = {"/bin/true"}};
      to = co_await start_new_process(listeners, options);
    }(server, outcome));
    loop.run();
    EXPECT_EQ(outcome.error(), system_error(ECHILD));
  }
  EXPECT_EQ(seen.size(), 0U);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  loop.ref();
}

TEST(Successor, that_is_abandoned_is_killed_without_blocking) {
  EventLoop loop;
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  Result<pid_t> outcome;
  spawn(loop, [](TcpServer& passed, Result<pid_t>& to) -> Task<> {
    const std::vector<PassedListener> listeners{{&passed, "web"}};
    const NewProcessOptions options{.arguments = {"/bin/sleep", "1000"}, .ready_timeout = 1ms};
    to = co_await start_new_process(listeners, options);
  }(server, outcome));
  loop.run();
  EXPECT_EQ(outcome.error(), system_error(ETIMEDOUT));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

/// Calls notify_ready() in a child, with `fd` named in the environment. Returns true if `fd`
/// stays open.
bool stays_open(int fd) {
  return test::in_child([fd] {
           ::setenv("TAMBOUR_READY_FD", std::to_string(fd).c_str(), 1);
           notify_ready();
           return ::fcntl(fd, F_GETFD) >= 0 ? 0 : 1;
         }) == 0;
}

TEST(Successor, notify_ready_writes_only_to_a_writable_pipe) {
  const auto socket = test::open_socketpair();
  EXPECT_TRUE(stays_open(socket.far.get()));
  char byte = 0;
  EXPECT_LT(::recv(socket.near.get(), &byte, 1, MSG_DONTWAIT), 0);
  const test::TemporaryFolder folder;
  const UniqueFd file(::open((folder.path() + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(stays_open(file.get()));
  struct stat status{};
  ::fstat(file.get(), &status);
  EXPECT_EQ(status.st_size, 0);
  const auto pipe = test::open_pipe();
  EXPECT_TRUE(stays_open(pipe.near.get()));
  EXPECT_FALSE(stays_open(pipe.far.get()));
  EXPECT_EQ(::read(pipe.near.get(), &byte, 1), 1);
}

TEST(Successor, fails_at_once_if_a_listener_is_not_open) {
  EXPECT_EQ(test::in_child([] {
              ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
              ::setenv("LISTEN_FDS", "20000000", 1);
              const int other = ::fcntl(0, F_DUPFD, 500);
              const Duration before = test::processor_time();
              const auto inherited = InheritedListeners::from_environment();
              if (test::processor_time() - before > 500ms) return 1;
              if (inherited || inherited.error() != system_error(EBADF)) return 2;
              return ::fcntl(other, F_GETFD) == FD_CLOEXEC ? 0 : 3;
            }),
            0);
}

// As documented in docs/restarting.md.
TEST(Successor, of_a_group_is_passed_its_listeners) {
  InheritedListeners inherited;
  const Endpoint endpoint = Endpoint::loopback_v4(0);
  LoopGroup group({.threads = 2});
  std::vector<UniqueFd> web = inherited.take_all("web");
  auto opened = web.empty() ? TcpServerGroup::listen(group, endpoint)
                            : TcpServerGroup::adopt(group, std::move(web));
  TcpServerGroup server = std::move(opened.value());
  const std::vector<PassedListener> listeners{{&server, "web"}};
  EXPECT_EQ(listeners.size(), 1U);
}

TEST(Fork, without_reopening_aborts_with_the_reason_on_io_uring) {
  LoopOptions options;
  options.backend = BackendKind::io_uring;
  auto opened = EventLoop::open(options);
  ASSERT_TRUE(opened);
  EventLoop& loop = **opened;
  if (loop.backend().kind != BackendKind::io_uring) GTEST_SKIP() << loop.backend().fallback_reason;
  loop.run_ready();
  EXPECT_DEATH(loop.run_ready(), "child of fork.*after_fork");
}

}  // namespace
}  // namespace tambour::successor_test
