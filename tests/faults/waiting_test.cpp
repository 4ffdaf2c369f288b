// The number of system calls of a wait.
#include <chrono>

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
    // No timeout is a multiple of a millisecond, and nearly all are longer than that.
    Timer timer(loop, [] {});
    timer.start(100ms + 300us, 100ms + 300us);
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

}  // namespace
}  // namespace tambour::waiting_test
