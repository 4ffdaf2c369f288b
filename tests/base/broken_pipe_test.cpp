// Writing without SIGPIPE, whose default action would end this program.
#include "base/broken_pipe.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>

#include <gtest/gtest.h>

namespace tambour::broken_pipe_test {
namespace {

bool is_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) != 0;
}

bool is_blocked() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGPIPE) != 0;
}

/// Acts as a call of the kernel that meets a closed peer.
ssize_t write_and_raise(ssize_t outcome) {
  ::raise(SIGPIPE);
  errno = outcome < 0 ? EPIPE : 0;
  return outcome;
}

TEST(BrokenPipe, raises_no_signal_if_a_call_fails) {
  EXPECT_EQ(detail::base::without_sigpipe(10, write_and_raise, ssize_t{-1}), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_FALSE(is_pending());
  EXPECT_FALSE(is_blocked());
}

TEST(BrokenPipe, raises_no_signal_if_a_call_writes_a_part) {
  for (const ssize_t written : {0, 1, 9}) {
    EXPECT_EQ(detail::base::without_sigpipe(10, write_and_raise, written), written);
    EXPECT_FALSE(is_pending());
    EXPECT_FALSE(is_blocked());
  }
}

TEST(BrokenPipe, keeps_a_signal_that_was_pending) {
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr), 0);
  ::raise(SIGPIPE);
  EXPECT_EQ(detail::base::without_sigpipe(10, write_and_raise, ssize_t{5}), 5);
  EXPECT_TRUE(is_pending());
  EXPECT_TRUE(is_blocked());
  constexpr timespec at_once{};
  EXPECT_EQ(::sigtimedwait(&broken_pipe, nullptr, &at_once), SIGPIPE);
  ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &broken_pipe, nullptr), 0);
}

/// The answer follows within a tick of the kernel's clock.
bool becomes(bool expected) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < deadline) {
    if (detail::base::is_broken_pipe_ignored() == expected) return true;
  }
  return false;
}

TEST(BrokenPipe, is_known_to_be_ignored) {
  EXPECT_TRUE(becomes(false));
  const auto former = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_TRUE(becomes(true));
  EXPECT_EQ(detail::base::without_sigpipe(10, write_and_raise, ssize_t{-1}), -1);
  EXPECT_FALSE(is_pending());
  std::signal(SIGPIPE, former);
  EXPECT_TRUE(becomes(false));
}

TEST(BrokenPipe, writes_to_a_pipe_without_a_reader) {
  std::array<int, 2> fds{};
  ASSERT_EQ(::pipe(fds.data()), 0);
  ::close(fds[0]);
  EXPECT_EQ(detail::base::without_sigpipe(1, ::write, fds[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(fds[1]);
}

}  // namespace
}  // namespace tambour::broken_pipe_test
