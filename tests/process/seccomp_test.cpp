// A seccomp filter may kill the process on system calls newer than the filter, so waiting must not
// probe for such calls.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/process.h"
#include "support/sandbox.h"

namespace tambour::seccomp_test {
namespace {

using namespace std::chrono_literals;

constexpr int no_filters = 77;
constexpr int early = 1;

/// Long enough that the loop has to wait, even on a busy machine.
constexpr auto delay = 100ms + 300us;

int run_a_timer(EventLoop& loop) {
  const auto before = std::chrono::steady_clock::now();
  Timer timer(loop, [] {});
  timer.start(delay);
  loop.run();
  return std::chrono::steady_clock::now() - before < delay ? early : 0;
}

void expect_survived(int status) {
  if (status == no_filters) GTEST_SKIP() << "no seccomp filter can be installed here";
  EXPECT_EQ(status, 0);
}

TEST(Seccomp, a_loop_runs_under_a_filter_that_was_installed_before_it_was_opened) {
  expect_survived(test::in_child([] {
    if (!test::kill_for_epoll_pwait2()) return no_filters;
    EventLoop loop({.backend = BackendKind::epoll});
    return run_a_timer(loop);
  }));
}

TEST(Seccomp, a_loop_runs_under_a_filter_that_was_installed_after_it_was_opened) {
  expect_survived(test::in_child([] {
    EventLoop loop({.backend = BackendKind::epoll});
    if (!test::kill_for_epoll_pwait2()) return no_filters;
    return run_a_timer(loop);
  }));
}

TEST(Seccomp, a_loop_runs_under_a_filter_that_was_installed_in_a_forked_child) {
  expect_survived(test::in_child([] {
    EventLoop loop({.backend = BackendKind::epoll});
    if (const int status = run_a_timer(loop); status != 0) return status;
    return test::in_child([&] {
      if (!test::kill_for_epoll_pwait2()) return no_filters;
      if (!loop.after_fork()) return 2;
      return run_a_timer(loop);
    });
  }));
}

TEST(Seccomp, events_arrive_during_a_wait_under_a_filter) {
  expect_survived(test::in_child([] {
    if (!test::kill_for_epoll_pwait2()) return no_filters;
    EventLoop loop({.backend = BackendKind::epoll});
    Timer timer(loop, [] {});
    timer.start(900ms);
    bool posted = false;
    std::thread other([&] {
      loop.post([&] {
        posted = true;
        timer.stop();
      });
    });
    loop.run();
    other.join();
    return posted ? 0 : 3;
  }));
}

TEST(Seccomp, signals_reach_a_child_without_pidfd_send_signal) {
  for (const int error : {ENOSYS, EPERM}) {
    expect_survived(test::in_child([error] {
      if (!test::forbid_pidfd_send_signal(error)) return no_filters;
      EventLoop loop({.backend = BackendKind::epoll});
      auto process = Process::spawn(
          loop, {.arguments = {"cat"}, .input = Stdio::pipe(), .output = Stdio::null()});
      if (!process) return 2;
      if (!process->send_signal(SIGKILL)) return 3;
      loop.run();
      return process->status() && process->status()->code == SIGKILL ? 0 : 4;
    }));
  }
}

}  // namespace
}  // namespace tambour::seccomp_test
