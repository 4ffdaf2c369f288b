// Tasks posted from other threads, from callbacks and outside run(), and wakeups.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/scale.h"

namespace tambour::posting_test {
namespace {

using namespace std::chrono_literals;

class Posting : public test::OnEveryBackend {
 protected:
  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(Posting);

TEST_P(Posting, keeps_the_order_of_each_of_four_threads) {
  const std::size_t value = test::scaled(100'000);
  std::array<std::size_t, 4> next{};
  std::size_t total = 0;
  loop().ref();
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < next.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < value; ++i) {
        loop().post([&, thread, i] {
          EXPECT_EQ(next[thread]++, i);
          if (++total == value * next.size()) loop().unref();
        });
        // Sometimes gives the loop time to wait.
        if (i % 1000 == 0) std::this_thread::yield();
      }
    });
  }
  loop().run();
  EXPECT_EQ(total, value * next.size());
}

TEST_P(Posting, any_thread_stops_the_loop) {
  const std::size_t rounds = test::scaled(2'000);
  std::atomic<std::size_t> runs = 0;
  // Stops the loop before, while and after it goes to sleep.
  std::jthread stopper([&] {
    for (std::size_t round = 0; round < rounds; ++round) {
      while (runs.load() < round) std::this_thread::yield();
      for (std::size_t i = 0; i < round % 64; ++i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      loop().stop();
    }
  });
  loop().ref();
  for (std::size_t round = 0; round < rounds; ++round) {
    loop().run();
    ++runs;
  }
  loop().unref();
}

TEST_P(Posting, a_stop_of_another_thread_before_run_is_kept) {
  loop().ref();
  std::thread([&] { loop().stop(); }).join();
  loop().run();
  loop().unref();
}

TEST_P(Posting, wakes_a_waiting_loop) {
  // Ping-pong, so that the loop sleeps before nearly every task.
  const std::size_t rounds = test::scaled(20'000);
  std::atomic<std::size_t> done = 0;
  loop().ref();
  std::jthread poster([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      loop().post([&] {
        ++done;
        done.notify_one();
      });
      done.wait(i);
    }
    loop().post([&] { loop().unref(); });
  });
  loop().run();
  EXPECT_EQ(done, rounds);
}

TEST_P(Posting, wakes_a_loop_that_waits_for_a_distant_timer) {
  Timer distant(loop(), [] { FAIL(); });
  distant.start(1h);
  std::jthread poster([this] {
    std::this_thread::sleep_for(5ms);
    loop().post([this] {
      ++calls;
      loop().stop();
    });
  });
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(Posting, from_a_task_runs_in_the_next_iteration) {
  for (int i = 0; i < 3; ++i) {
    loop().post([this] {
      ++calls;
      loop().post([this] { calls += 100; });
    });
  }
  loop().run_once();
  EXPECT_EQ(calls, 3);
  loop().run_once();
  EXPECT_EQ(calls, 303);
  loop().run();
}

TEST_P(Posting, a_task_that_posts_itself_does_not_starve_the_others) {
  const auto pipe = test::open_pipe();
  test::write_to(pipe.far);
  std::function<void()> again = [&] {
    ++calls;
    loop().post([&again] { again(); });
  };
  again();
  int reads = 0;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) {
    if (++reads == 100) loop().stop();
  });
  ASSERT_TRUE(watcher.start());
  loop().run();
  EXPECT_EQ(reads, 100);
  EXPECT_GE(calls, 99);
  EXPECT_LE(calls, 110);
}

TEST_P(Posting, remaining_tasks_are_destroyed_without_running) {
  const auto token = std::make_shared<int>();
  for (int i = 0; i < 100; ++i) loop().post([token] { FAIL(); });
  EXPECT_EQ(token.use_count(), 101);
  destroy_loop();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Posting, tasks_are_destroyed_when_they_have_run) {
  const auto token = std::make_shared<int>();
  loop().post([token] {});
  loop().post([&token] { EXPECT_EQ(token.use_count(), 1); });
  loop().run();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Posting, a_task_may_destroy_watchers_and_own_them) {
  const auto pipe = test::open_pipe();
  test::write_to(pipe.far);
  auto watcher = std::make_unique<FdWatcher>(loop(), pipe.near.get(), Events::read,
                                             [this](Events) { ++calls; });
  ASSERT_TRUE(watcher->start());
  loop().post([watcher = std::move(watcher)]() mutable { watcher.reset(); });
  loop().run();
  EXPECT_LE(calls, 1);
}

TEST_P(Posting, a_task_that_throws_is_removed_and_the_others_remain) {
  Timer distant(loop(), [] { FAIL(); });
  distant.start(1h);
  loop().post([this] { ++calls; });
  loop().post([] { throw std::runtime_error("thrown by a task"); });
  loop().post([this] { ++calls; });
  EXPECT_THROW(loop().run(), std::runtime_error);
  EXPECT_EQ(calls, 1);
  loop().post([this] {
    ++calls;
    loop().stop();
  });
  loop().run();
  EXPECT_EQ(calls, 3);
}

TEST_P(Posting, wake_before_the_wait_ends_the_wait) {
  Timer distant(loop(), [] { FAIL(); });
  distant.start(1h);
  for (int i = 0; i < 100; ++i) {
    loop().wake();
    loop().run_once();
  }
  EXPECT_TRUE(distant.is_started());
}

TEST_P(Posting, wake_from_another_thread_ends_the_wait) {
  loop().ref();
  std::atomic<int> iterations = 0;
  std::jthread waker([&] {
    for (int i = 0; i < 200; ++i) {
      loop().wake();
      iterations.wait(i);
    }
  });
  for (int i = 0; i < 200; ++i) {
    loop().run_once();
    ++iterations;
    iterations.notify_one();
  }
  loop().unref();
}

TEST_P(Posting, the_loop_waits_again_after_wakeups) {
  for (int i = 0; i < 10; ++i) loop().wake();
  run_iterations();
  EXPECT_TRUE(sleeps_through(50ms));
}

std::atomic<EventLoop*> to_wake = nullptr;

// wake() is async-signal-safe; the handler also interrupts the wait.
TEST_P(Posting, wake_from_a_signal_handler) {
  to_wake = &loop();
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {
    const int saved = errno;
    errno = ENOTTY;
    to_wake.load()->wake();
    if (errno != ENOTTY) std::abort();
    errno = saved;
  };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  loop().ref();
  std::atomic<bool> over = false;
  std::jthread sender([&over, receiver = ::pthread_self()] {
    while (!over) {
      ::pthread_kill(receiver, SIGUSR1);
      std::this_thread::sleep_for(1ms);
    }
  });
  for (int i = 0; i < 20; ++i) loop().run_once();
  over = true;
  sender.join();
  loop().unref();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

// After a signal whose handler does not call wake(), the wait continues and timers expire on time.
TEST_P(Posting, an_interrupted_wait_is_resumed) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> over = false;
  std::jthread sender([&over, receiver = ::pthread_self()] {
    while (!over) {
      ::pthread_kill(receiver, SIGUSR1);
      std::this_thread::sleep_for(1ms);
    }
  });
  const TimePoint start = Clock::now();
  Timer timer(loop(), [&] {
    ++calls;
    EXPECT_GE(Clock::now(), start + 20ms);
  });
  timer.start(20ms);
  loop().run_once();
  EXPECT_EQ(calls, 1);
  over = true;
  sender.join();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

}  // namespace
}  // namespace tambour::posting_test
