// Waits of more than 100 ms end in time although epoll_wait(2) has no timeout: a timerfd ends
// them. A wait that is never ended makes the test exceed its time limit.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/process.h"
#include "support/sandbox.h"
#include "support/scale.h"

namespace tambour::wait_timer_test {
namespace {

using namespace std::chrono_literals;

/// More than the shortest wait that has no timeout.
constexpr Duration long_wait = 150ms;
constexpr int no_filters = 77;

class WaitTimer : public testing::Test {
 protected:
  /// Makes the loop wait once with the timers that were started: a task that another thread posts
  /// ends the wait.
  void wait_once() {
    bool posted = false;
    std::jthread poster([&] {
      std::this_thread::sleep_for(20ms);
      loop->post([&] { posted = true; });
    });
    while (!posted) loop->run_once();
  }

  /// The iterations of the loop since the last call.
  std::uint64_t iterations() {
    const std::uint64_t before = iterations_before_;
    iterations_before_ = loop->stats().iterations;
    return iterations_before_ - before;
  }

  std::optional<EventLoop> loop{std::in_place, LoopOptions{.backend = BackendKind::epoll}};

 private:
  std::uint64_t iterations_before_ = 0;
};

/// Runs until a timer expires. Returns false if that is early.
bool wait_for_timer(EventLoop& loop, Duration delay = long_wait) {
  Timer timer(loop, [&loop] { loop.stop(); });
  const TimePoint began = Clock::now();
  timer.start(delay);
  loop.run();
  return Clock::now() - began >= delay;
}

TEST_F(WaitTimer, a_long_wait_ends_once_and_not_early) {
  iterations();
  EXPECT_TRUE(wait_for_timer(*loop));
  // One more if the timerfd expires by a slightly different clock.
  EXPECT_LE(iterations(), 3U);
}

TEST_F(WaitTimer, an_earlier_deadline_is_kept) {
  Timer late(*loop, [] {});
  late.start(1h);
  wait_once();
  EXPECT_TRUE(wait_for_timer(*loop));
  EXPECT_TRUE(wait_for_timer(*loop, 30ms));
  wait_once();
  EXPECT_TRUE(wait_for_timer(*loop));
}

TEST_F(WaitTimer, a_postponed_deadline_costs_one_wakeup_and_is_kept) {
  Timer timer(*loop, [this] { loop->stop(); });
  timer.start(long_wait);
  wait_once();
  iterations();
  const TimePoint began = Clock::now();
  constexpr Duration later = 2 * long_wait;
  timer.start(later);
  loop->run();
  EXPECT_GE(Clock::now() - began, later);
  EXPECT_LE(iterations(), 5U);
}

TEST_F(WaitTimer, an_expiry_that_no_timer_needs_is_one_wakeup) {
  {
    Timer cancelled(*loop, [] {});
    cancelled.start(long_wait);
    wait_once();
  }
  iterations();
  std::jthread poster([this] {
    std::this_thread::sleep_for(2 * long_wait);
    loop->post([this] { loop->stop(); });
  });
  loop->ref();
  loop->run();
  loop->unref();
  EXPECT_LE(iterations(), 4U);
}

TEST_F(WaitTimer, does_not_keep_the_descriptor_of_a_hosted_loop_readable) {
  const auto fd = loop->fd();
  ASSERT_TRUE(fd);
  {
    Timer cancelled(*loop, [] {});
    cancelled.start(long_wait);
    wait_once();
  }
  pollfd polled{.fd = *fd, .events = POLLIN, .revents = 0};
  unsigned wakeups = 0;
  const TimePoint end = Clock::now() + 2 * long_wait;
  while (Clock::now() < end) {
    EXPECT_EQ(loop->next_deadline(), never);
    if (::poll(&polled, 1, int((2 * long_wait) / 1ms)) > 0) ++wakeups;
    loop->run_ready();
  }
  EXPECT_LE(wakeups, 2U);
}

// A duplicate of a closed descriptor makes the backend open another epoll set.
TEST_F(WaitTimer, is_registered_with_the_next_epoll_set) {
  auto pipe = test::open_pipe();
  const UniqueFd duplicate(::dup(pipe.near.get()));
  {
    FdWatcher reader(*loop, pipe.near.get(), Events::read, [](Events) {});
    ASSERT_TRUE(reader.start());
    loop->run_ready();
    pipe.near.reset();
  }
  test::write_to(pipe.far);
  Timer late(*loop, [] {});
  late.start(1h);
  const std::uint64_t before = loop->stats().system_calls;
  wait_once();
  EXPECT_TRUE(wait_for_timer(*loop));
  EXPECT_LT(loop->stats().system_calls - before, 100U);
}

TEST_F(WaitTimer, of_a_child_is_its_own) {
  Timer late(*loop, [] {});
  late.start(1h);
  wait_once();
  const std::size_t descriptors = test::open_descriptors();
  EXPECT_EQ(test::in_child([&] {
              if (!loop->after_fork()) return 1;
              if (test::open_descriptors() != descriptors) return 2;
              return wait_for_timer(*loop) ? 0 : 3;
            }),
            0);
  iterations();
  EXPECT_TRUE(wait_for_timer(*loop));
  EXPECT_LE(iterations(), 3U);
}

TEST_F(WaitTimer, is_opened_again_in_a_child_that_has_closed_all_descriptors) {
  EXPECT_EQ(test::in_child([&] {
              for (int fd = 3; fd < 256; ++fd) ::close(fd);
              // Gets one of the numbers that the loop had.
              const auto pipe = test::open_pipe();
              if (!loop->after_fork()) return 1;
              test::write_to(pipe.far);
              char byte = 0;
              if (::read(pipe.near.get(), &byte, 1) != 1) return 2;
              return wait_for_timer(*loop) ? 0 : 3;
            }),
            0);
}

TEST(WaitTimerForbidden, waits_have_timeouts) {
  for (const int error : {EPERM, ENOSYS}) {
    for (const bool before : {false, true}) {
      const int status = test::in_child([&] {
        if (before && !test::forbid_timerfd(error)) return no_filters;
        EventLoop loop({.backend = BackendKind::epoll});
        if (!before && !test::forbid_timerfd(error)) return no_filters;
        return wait_for_timer(loop) && wait_for_timer(loop) ? 0 : 1;
      });
      if (status == no_filters) GTEST_SKIP() << "no seccomp filter can be installed here";
      EXPECT_EQ(status, 0) << error;
    }
  }
}

// The last descriptor of the process is not needed.
TEST(WaitTimerForbidden, a_loop_without_a_descriptor_for_it_works) {
  TAMBOUR_NEEDS_LAST_DESCRIPTOR();
  EXPECT_EQ(test::in_child([] {
              std::optional<EventLoop> loop;
              UniqueFd next(::dup(0));
              const int number = next.get();
              next.reset();
              {
                // For an epoll set and an eventfd.
                const test::OpenFilesLimit limit(static_cast<rlim_t>(number) + 2);
                loop.emplace(LoopOptions{.backend = BackendKind::epoll});
              }
              return wait_for_timer(*loop) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace tambour::wait_timer_test
