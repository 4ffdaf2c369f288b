// A seccomp filter may kill the process on system calls newer than the filter, so waiting must not
// probe for such calls.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/process.h"
#include "support/sandbox.h"
#include "support/scale.h"
#include "support/temporary_folder.h"

namespace tambour::seccomp_test {
namespace {

using namespace std::chrono_literals;

constexpr int no_filters = 77;
constexpr int early = 1;

/// Long enough that the loop has to wait, even on a busy machine, and so short that the wait has a
/// timeout (WaitTimer::wait_min_ns).
constexpr auto delay = 90ms + 300us;

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
    if (!test::kill_for_new_calls()) return no_filters;
    EventLoop loop({.backend = BackendKind::epoll});
    return run_a_timer(loop);
  }));
}

TEST(Seccomp, a_loop_runs_under_a_filter_that_was_installed_after_it_was_opened) {
  expect_survived(test::in_child([] {
    EventLoop loop({.backend = BackendKind::epoll});
    if (!test::kill_for_new_calls()) return no_filters;
    return run_a_timer(loop);
  }));
}

TEST(Seccomp, a_loop_runs_under_a_filter_that_was_installed_in_a_forked_child) {
  expect_survived(test::in_child([] {
    EventLoop loop({.backend = BackendKind::epoll});
    if (const int status = run_a_timer(loop); status != 0) return status;
    return test::in_child([&] {
      if (!test::kill_for_new_calls()) return no_filters;
      if (!loop.after_fork()) return 2;
      return run_a_timer(loop);
    });
  }));
}

TEST(Seccomp, events_arrive_during_a_wait_under_a_filter) {
  expect_survived(test::in_child([] {
    if (!test::kill_for_new_calls()) return no_filters;
    EventLoop loop({.backend = BackendKind::epoll});
    Timer timer(loop, [] {});
    timer.start(1min);
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

/// Writes a file, and reads it back.
Task<> use_a_file(std::string path, int& status) {
  auto file = co_await File::open(path, FileMode::update);
  if (!file) co_return;
  const auto written = co_await file->write_at("text", 0);
  std::array<char, 4> place{};
  const auto got = co_await file->read_at(std::as_writable_bytes(std::span(place)), 0);
  if (written && got && std::string_view(place.data(), *got) == "text") status = 0;
}

int use_a_file(EventLoop& loop, const std::string& path) {
  int status = 2;
  spawn(loop, use_a_file(path, status));
  loop.run();
  return status;
}

/// The ring for files is not tried, because the program has not asked for it.
TEST(Seccomp, threads_perform_file_operations_under_a_filter) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers do not allow threads after fork in a child";
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << "";
  for (const bool before : {false, true}) {
    for (const BackendKind kind : {BackendKind::epoll, BackendKind::poll, BackendKind::select}) {
      expect_survived(test::in_child([&] {
        if (before && !test::kill_for_new_calls()) return no_filters;
        EventLoop loop({.backend = kind});
        if (!before && !test::kill_for_new_calls()) return no_filters;
        return use_a_file(loop, path);
      }));
      for (const int error : {EPERM, ENOSYS}) {
        expect_survived(test::in_child([&] {
          if (before && !test::forbid_io_uring(error)) return no_filters;
          EventLoop loop({.backend = kind});
          if (!before && !test::forbid_io_uring(error)) return no_filters;
          return use_a_file(loop, path);
        }));
      }
    }
  }
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
