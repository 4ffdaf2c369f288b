// The number of system calls of a wait.
#include <cerrno>
#include <chrono>
#include <cstddef>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>

#include "faults/faults.h"
#include "support/files.h"
#include "support/process.h"
#include "support/sandbox.h"

namespace tambour::waiting_test {
namespace {

using namespace std::chrono_literals;
using detail::base::Call;

TEST(Waiting, a_wait_under_a_filter_that_ends_with_an_event_is_one_system_call) {
  constexpr int no_filters = 77;
  const int status = test::in_child([] {
    if (!test::kill_for_new_calls()) return no_filters;
    EventLoop loop({.backend = BackendKind::epoll});
    // No timeout is a multiple of a millisecond, and nearly all are longer than that. No wait is
    // long enough for a timerfd.
    Timer timer(loop, [] {});
    timer.start(90ms + 300us, 90ms + 300us);
    test::Ends pipe = test::open_pipe();
    constexpr unsigned messages = 1000;
    unsigned received = 0;
    FdWatcher watcher(loop, pipe.near.get(), Events::read, [&](Events) {
      test::drain(pipe.near);
      test::write_to(pipe.far);
      if (++received == messages) loop.stop();
    });
    if (!watcher.start()) return 1;
    test::write_to(pipe.far);
    const test::Faults counted;
    loop.run();
    if (counted.count(Call::epoll_wait) < messages) return 2;
    return counted.count(Call::ppoll) < messages / 4 ? 0 : 3;
  });
  if (status == no_filters) GTEST_SKIP() << "no seccomp filter can be installed here";
  EXPECT_EQ(status, 0);
}

/// Sends messages through a pipe, each of which postpones a timer.
int exchange_messages(EventLoop& loop, unsigned messages) {
  Timer timer(loop, [] {});
  test::Ends pipe = test::open_pipe();
  unsigned received = 0;
  FdWatcher watcher(loop, pipe.near.get(), Events::read, [&](Events) {
    test::drain(pipe.near);
    timer.start(10min);
    test::write_to(pipe.far);
    if (++received == messages) loop.stop();
  });
  if (!watcher.start()) return 1;
  timer.start(10min);
  test::write_to(pipe.far);
  loop.run();
  return 0;
}

TEST(Waiting, a_timer_that_each_message_postpones_is_set_once) {
  EventLoop loop({.backend = BackendKind::epoll});
  const test::Faults counted;
  EXPECT_EQ(exchange_messages(loop, 1000), 0);
  EXPECT_GE(counted.count(Call::epoll_wait), 1000U);
  EXPECT_EQ(counted.count(Call::wait_timer_set), 1U);
}

TEST(Waiting, a_timerfd_that_is_not_available_is_not_opened_again) {
  for (const int error : {EMFILE, ENFILE, ENODEV, ENOMEM, EPERM, ENOSYS}) {
    test::Faults faults;
    faults.fail(Call::wait_timer_create, 1, error);
    EventLoop loop({.backend = BackendKind::epoll});
    EXPECT_EQ(exchange_messages(loop, 100), 0);
    EXPECT_EQ(faults.count(Call::wait_timer_create), 1U);
    EXPECT_EQ(faults.count(Call::wait_timer_set), 0U);
  }
}

TEST(Waiting, a_timerfd_that_cannot_be_set_is_closed) {
  const std::size_t before = test::open_descriptors();
  {
    EventLoop loop({.backend = BackendKind::epoll});
    const std::size_t with_timerfd = test::open_descriptors();
    test::Faults faults;
    faults.fail(Call::wait_timer_set, 1, EPERM);
    EXPECT_EQ(exchange_messages(loop, 100), 0);
    EXPECT_EQ(faults.count(Call::wait_timer_set), 1U);
    EXPECT_EQ(test::open_descriptors(), with_timerfd - 1);
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST(Waiting, a_timerfd_that_cannot_be_registered_is_closed) {
  const std::size_t before = test::open_descriptors();
  {
    test::Faults faults;
    faults.fail(Call::epoll_add, 1, ENOSPC);
    EventLoop loop({.backend = BackendKind::epoll});
    EXPECT_EQ(exchange_messages(loop, 100), 0);
    EXPECT_EQ(faults.count(Call::wait_timer_set), 0U);
    // An epoll set and an eventfd.
    EXPECT_EQ(test::open_descriptors(), before + 2);
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

}  // namespace
}  // namespace tambour::waiting_test
