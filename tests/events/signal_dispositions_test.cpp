// The effect of signal watchers on the process: handlers, errno, descriptors, forks.
#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::signal_dispositions_test {
namespace {

class SignalDispositions : public test::OnEveryBackend {
 protected:
  static struct sigaction disposition(int number) {
    struct sigaction current{};
    ::sigaction(number, nullptr, &current);
    return current;
  }

  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(SignalDispositions);

TEST_P(SignalDispositions, the_former_disposition_is_restored_when_the_last_watcher_stops) {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before{};
  ::sigaction(SIGUSR2, &ignore, &before);
  {
    EventLoop other(options());
    Signal first(loop(), SIGUSR2, [](int) {});
    Signal second(other, SIGUSR2, [](int) {});
    ASSERT_TRUE(first.start());
    EXPECT_NE(disposition(SIGUSR2).sa_handler, SIG_IGN);
    EXPECT_NE(disposition(SIGUSR2).sa_flags & SA_RESTART, 0);
    ASSERT_TRUE(second.start());
    first.stop();
    EXPECT_NE(disposition(SIGUSR2).sa_handler, SIG_IGN);
    // The other loop is destroyed while its watcher is started.
  }
  EXPECT_EQ(disposition(SIGUSR2).sa_handler, SIG_IGN);
  ::sigaction(SIGUSR2, &before, nullptr);
}

TEST_P(SignalDispositions, a_handler_that_other_code_installed_later_is_kept) {
  struct sigaction before = disposition(SIGUSR2);
  Signal signal(loop(), SIGUSR2, [](int) {});
  ASSERT_TRUE(signal.start());
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR2, &ignore, nullptr);
  signal.stop();
  EXPECT_EQ(disposition(SIGUSR2).sa_handler, SIG_IGN);
  ::sigaction(SIGUSR2, &before, nullptr);
}

TEST_P(SignalDispositions, the_handler_leaves_errno_alone) {
  Signal signal(loop(), SIGUSR1, [](int) {});
  ASSERT_TRUE(signal.start());
  errno = EDOM;
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  EXPECT_EQ(errno, EDOM);
}

TEST_P(SignalDispositions, successive_loops_use_the_same_descriptors) {
  const auto watch_once = [this] {
    EventLoop loop(options());
    Signal signal(loop, SIGUSR1, [this](int) { ++calls; });
    ASSERT_TRUE(signal.start());
    ::raise(SIGUSR1);
    for (int iteration = 0; iteration < 3; ++iteration) loop.run_ready();
  };
  watch_once();
  const std::size_t before = test::open_descriptors();
  for (int i = 0; i < 20; ++i) watch_once();
  EXPECT_EQ(test::open_descriptors(), before);
  EXPECT_EQ(calls, 21);
}

TEST_P(SignalDispositions, works_independently_in_a_forked_child) {
  Signal signal(loop(), SIGUSR1, [this](int) { ++calls; });
  ASSERT_TRUE(signal.start());
  ::raise(SIGUSR1);  // For the parent.
  EXPECT_EQ(test::in_child([this] {
              // Raised before the loop is reopened: it is kept for the child and not reported to
              // the parent.
              ::raise(SIGUSR1);
              if (!loop().after_fork()) return 1;
              run_iterations();
              if (calls != 1) return 2;
              ::raise(SIGUSR1);
              run_iterations();
              if (calls != 2) return 3;
              EventLoop second(options());
              Signal another(second, SIGUSR1, [this](int) { calls += 10; });
              if (!another.start()) return 4;
              ::raise(SIGUSR1);
              run_iterations();
              for (int iteration = 0; iteration < 3; ++iteration) second.run_ready();
              return calls == 13 ? 0 : 5;
            }),
            0);
  run_iterations();
  EXPECT_EQ(calls, 1);
  ::raise(SIGUSR1);
  run_iterations();
  EXPECT_EQ(calls, 2);
}

TEST_P(SignalDispositions, signals_of_a_forked_child_do_not_wake_the_parent) {
  Signal signal(loop(), SIGUSR1, [this](int) { ++calls; });
  ASSERT_TRUE(signal.start());
  run_iterations();
  EXPECT_EQ(test::in_child([] {
              ::raise(SIGUSR1);
              return 0;
            }),
            0);
  const std::uint64_t before = loop().stats().callbacks;
  run_iterations();
  EXPECT_EQ(loop().stats().callbacks, before);
  EXPECT_EQ(calls, 0);
}

TEST_P(SignalDispositions, a_handle_may_outlive_its_loop) {
  const struct sigaction before = disposition(SIGUSR1);
  Signal signal(loop(), SIGUSR1, [this](int) { ++calls; });
  ASSERT_TRUE(signal.start());
  ::raise(SIGUSR1);
  loop().run_ready();
  ::raise(SIGUSR1);
  destroy_loop();
  EXPECT_FALSE(signal.is_started());
  EXPECT_EQ(disposition(SIGUSR1).sa_handler, before.sa_handler);
  signal.stop();
  EXPECT_LE(calls, 1);
}

}  // namespace
}  // namespace tambour::signal_dispositions_test
