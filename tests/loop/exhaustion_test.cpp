// Running out of file descriptors is reported as an error and leaks nothing.
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/process.h"

namespace tambour::exhaustion_test {
namespace {

constexpr BackendKind kinds[] = {BackendKind::automatic, BackendKind::epoll, BackendKind::io_uring,
                                 BackendKind::poll, BackendKind::select};

/// Returns an RLIMIT_NOFILE value that leaves exactly `left` free descriptors.
rlim_t limit_that_leaves(std::size_t left) {
  // The numbers in use may have gaps, so probe for the free ones.
  std::vector<test::UniqueFd> probes;
  const auto any = test::open_eventfd();
  for (std::size_t i = 0; i < left; ++i)
    probes.emplace_back(::fcntl(any.get(), F_DUPFD_CLOEXEC, 0));
  const test::UniqueFd first_refused(::fcntl(any.get(), F_DUPFD_CLOEXEC, 0));
  // `any` is closed on return as well and frees the lowest number.
  return static_cast<rlim_t>(left == 0 ? any.get() : probes.back().get());
}

TEST(Exhaustion, of_descriptors_is_reported_and_leaks_nothing) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  for (const BackendKind kind : kinds) {
    bool opened_at_last = false;
    for (std::size_t left = 0; left < 5; ++left) {
      const std::size_t before = test::open_descriptors();
      {
        const test::OpenFilesLimit limit(limit_that_leaves(left));
        const auto opened = EventLoop::open({.backend = kind});
        opened_at_last = opened.has_value();
        if (!opened) {
          EXPECT_EQ(opened.error(), system_error(EMFILE)) << opened.error().message();
        }
        if (opened) (*opened)->run_ready();
        EXPECT_FALSE(left == 0 && opened) << "a loop out of nothing";
      }
      EXPECT_EQ(test::open_descriptors(), before) << "with " << left << " left";
    }
    EXPECT_TRUE(opened_at_last);
  }
}

TEST(Exhaustion, is_an_exception_of_the_constructor) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  const test::OpenFilesLimit limit(limit_that_leaves(0));
  for (const BackendKind kind : kinds) {
    try {
      const EventLoop loop({.backend = kind});
      FAIL() << "no exception";
    } catch (const std::system_error& thrown) {
      EXPECT_EQ(thrown.code(), system_error(EMFILE));
    }
  }
}

TEST(Exhaustion, of_descriptors_does_not_stop_a_running_loop) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  for (const BackendKind kind : kinds) {
    EventLoop loop({.backend = kind});
    const auto pipe = test::open_pipe();
    const test::OpenFilesLimit limit(limit_that_leaves(0));
    int calls = 0;
    FdWatcher watcher(loop, pipe.near.get(), Events::read, [&](Events) {
      test::drain(pipe.near);
      ++calls;
    });
    ASSERT_TRUE(watcher.start());
    for (int round = 1; round <= 3; ++round) {
      test::write_to(pipe.far);
      loop.run_once();
      EXPECT_EQ(calls, round);
    }
  }
}

}  // namespace
}  // namespace tambour::exhaustion_test
