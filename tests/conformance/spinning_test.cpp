// Busy-polling costs nothing if there are no events, whatever the spin option.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::spinning_test {
namespace {

using namespace std::chrono_literals;

class Spinning : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Spinning);

TEST_P(Spinning, an_idle_loop_waits_in_the_kernel) { EXPECT_TRUE(sleeps_through(200ms)); }

TEST_P(Spinning, a_loop_with_rare_timers_waits_in_the_kernel) {
  int calls = 0;
  Timer rare(loop(), [&calls] { ++calls; });
  rare.start(5ms, 5ms);
  EXPECT_TRUE(sleeps_through(200ms));
  EXPECT_GT(calls, 0);
}

TEST_P(Spinning, a_loop_with_rare_events_waits_in_the_kernel) {
  // A spin budget close to the length of the pauses is not used once waits prove longer.
  LoopOptions long_spin = options();
  if (long_spin.spin > 0ns) long_spin.spin = 8ms;
  EventLoop loop(long_spin);
  const auto pipe = test::open_pipe();
  int reads = 0;
  FdWatcher watcher(loop, pipe.near.get(), Events::read, [&](Events) {
    test::drain(pipe.near);
    ++reads;
  });
  ASSERT_TRUE(watcher.start());
  std::atomic<bool> over = false;
  std::jthread writer([&] {
    while (!over) {
      test::write_to(pipe.far);
      std::this_thread::sleep_for(10ms);
    }
  });
  // The first waits train the moving average.
  while (reads < 10) loop.run_once();
  // Measures again if the limit is exceeded: on a busy machine, the pauses of the writer differ.
  Duration used = Duration::max();
  for (int i = 0; i < 10 && used >= 40ms; ++i) {
    const Duration before = test::processor_time();
    for (const int end = reads + 20; reads < end;) loop.run_once();
    used = test::processor_time() - before;
  }
  over = true;
  EXPECT_LT(used, 40ms) << "of 200 ms";
}

TEST_P(Spinning, all_events_of_a_burst_are_handled) {
  const auto sockets = test::open_socketpair();
  int rounds = 0;
  FdWatcher near(loop(), sockets.near.get(), Events::read, [&](Events) {
    test::drain(sockets.near);
    if (++rounds == 1000) return loop().stop();
    test::write_to(sockets.near);
  });
  FdWatcher far(loop(), sockets.far.get(), Events::read, [&](Events) {
    test::drain(sockets.far);
    test::write_to(sockets.far);
  });
  ASSERT_TRUE(near.start());
  ASSERT_TRUE(far.start());
  test::write_to(sockets.near);
  loop().run();
  EXPECT_EQ(rounds, 1000);
}

TEST_P(Spinning, a_stop_from_a_task_is_noticed_between_two_events) {
  // The posted task must be noticed whether the loop spins or sleeps.
  const auto sockets = test::open_socketpair();
  FdWatcher watcher(loop(), sockets.near.get(), Events::read, [](Events) {});
  ASSERT_TRUE(watcher.start());
  for (int i = 0; i < 500; ++i) {
    std::atomic<bool> posted = false;
    std::jthread poster([&] {
      loop().post([this] { loop().stop(); });
      posted = true;
    });
    loop().run();
    poster.join();
    EXPECT_TRUE(posted);
  }
}

}  // namespace
}  // namespace tambour::spinning_test
