// PostQueue: the tasks of each producer run in the order in which it pushed them.
#include "loop/post_queue.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/process.h"
#include "support/scale.h"

namespace tambour::post_queue_test {
namespace {

using detail::loop::PostQueue;

void run_all(PostQueue& queue) {
  queue.take();
  queue.run();
}

TEST(PostQueue, runs_in_the_order_of_posting) {
  PostQueue queue;
  std::vector<int> log;
  EXPECT_TRUE(queue.empty());
  for (int i = 0; i < 5; ++i) queue.push([&log, i] { log.push_back(i); });
  EXPECT_FALSE(queue.empty());
  run_all(queue);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(log, (std::vector{0, 1, 2, 3, 4}));
}

TEST(PostQueue, leaves_tasks_posted_during_a_run_for_the_next_run) {
  PostQueue queue;
  int calls = 0;
  queue.push([&] { queue.push([&calls] { ++calls; }); });
  run_all(queue);
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(queue.empty());
  run_all(queue);
  EXPECT_EQ(calls, 1);
}

TEST(PostQueue, takes_no_new_tasks_while_taken_tasks_remain) {
  PostQueue queue;
  std::vector<int> log;
  queue.push([&] {
    log.push_back(1);
    queue.push([&log] { log.push_back(3); });
    // Like a nested run() of the loop.
    run_all(queue);
    log.push_back(9);
  });
  queue.push([&log] { log.push_back(2); });
  run_all(queue);
  EXPECT_EQ(log, (std::vector{1, 2, 9}));
  run_all(queue);
  EXPECT_EQ(log, (std::vector{1, 2, 9, 3}));
}

TEST(PostQueue, a_task_that_throws_is_removed_and_later_tasks_remain) {
  PostQueue queue;
  std::vector<int> log;
  queue.push([&log] { log.push_back(1); });
  queue.push([] { throw std::runtime_error("thrown by a task"); });
  queue.push([&log] { log.push_back(2); });
  queue.take();
  EXPECT_THROW(queue.run(), std::runtime_error);
  EXPECT_FALSE(queue.empty());
  queue.push([&log] { log.push_back(3); });
  while (!queue.empty()) run_all(queue);
  EXPECT_EQ(log, (std::vector{1, 2, 3}));
}

TEST(PostQueue, destroys_each_task_before_the_next_runs) {
  PostQueue queue;
  const auto token = std::make_shared<int>();
  queue.push([token] {});
  queue.push([&token] { EXPECT_EQ(token.use_count(), 1); });
  run_all(queue);
}

TEST(PostQueue, destroys_remaining_tasks_without_running_them) {
  const auto token = std::make_shared<int>();
  bool ran = false;
  {
    PostQueue queue;
    for (int i = 0; i < 10; ++i) queue.push([token, &ran] { ran = true; });
    queue.clear();
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_TRUE(queue.empty());
    for (int i = 0; i < 10; ++i) queue.push([token, &ran] { ran = true; });
  }
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_FALSE(ran);
}

TEST(PostQueue, keeps_the_order_of_each_of_four_producers) {
  const std::size_t value = test::scaled(200'000);
  PostQueue queue;
  std::array<std::size_t, 4> next{};
  bool in_order = true;
  std::vector<std::jthread> producers;
  for (std::size_t producer = 0; producer < next.size(); ++producer) {
    producers.emplace_back([&, producer] {
      for (std::size_t i = 0; i < value; ++i) {
        queue.push([&, producer, i] { in_order = in_order && next[producer]++ == i; });
      }
    });
  }
  std::size_t total = 0;
  while (total < value * next.size()) {
    run_all(queue);
    total = next[0] + next[1] + next[2] + next[3];
    ASSERT_TRUE(in_order);
  }
  EXPECT_TRUE(queue.empty());
}

/// Runs in the child after fork(2), where no other producer exists.
int run_in_child(PostQueue& queue) {
  ::alarm(60);
  if (!queue.reopen()) return 1;
  while (!queue.empty()) run_all(queue);
  int late = 0;
  for (int i = 0; i < 1000; ++i) queue.push([&late] { ++late; });
  run_all(queue);
  return late == 1000 && queue.empty() ? 0 : 2;
}

TEST(PostQueue, in_a_child_does_not_wait_for_tasks_that_were_being_posted) {
  if (test::sanitized) GTEST_SKIP() << "a sanitizer's own locks are not reopened";
  PostQueue queue;
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> pushed = 0;
  std::atomic<std::uint64_t> ran = 0;
  std::vector<std::jthread> producers;
  for (int i = 0; i < 3; ++i) {
    producers.emplace_back([&] {
      while (!over) {
        // Bounded, so that the tasks run soon, but large enough that a fork interrupts the
        // producers.
        if (pushed - ran > 20'000) {
          std::this_thread::yield();
        } else {
          ++pushed;
          queue.push([&ran] { ++ran; });
        }
      }
    });
  }
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    run_all(queue);
    EXPECT_EQ(test::in_child([&] { return run_in_child(queue); }), 0);
  }
  over = true;
}

TEST(PostQueue, rejects_tasks_above_the_limit_and_continues) {
  if (test::sanitized) GTEST_SKIP() << "takes much memory";
  PostQueue queue;
  std::uint64_t ran = 0;
  std::uint64_t posted = 0;
  const auto push_all = [&] {
    Callback<void()> task;
    try {
      for (;;) {
        task = [&ran] { ++ran; };
        queue.push(std::move(task));
        ++posted;
      }
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), system_error(EAGAIN));
      EXPECT_TRUE(task) << "it is the caller's again";
    }
  };
  push_all();
  EXPECT_LE(posted, PostQueue::tasks_max);
  EXPECT_GE(posted, PostQueue::tasks_max - 1024);
  while (ran < 1024) run_all(queue);
  push_all();
  while (!queue.empty()) run_all(queue);
  EXPECT_EQ(ran, posted);
  queue.push([&ran] { ran = 0; });
  run_all(queue);
  EXPECT_EQ(ran, 0U);
}

}  // namespace
}  // namespace tambour::post_queue_test
