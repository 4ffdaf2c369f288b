// Tasks of many producers in the order of each.
#include "loop/post_queue.h"

#include <array>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/scale.h"

namespace tambour {
namespace {

using loop::PostQueue;

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

TEST(PostQueue, leaves_for_the_next_run_what_is_posted_meanwhile) {
  PostQueue queue;
  int calls = 0;
  queue.push([&] { queue.push([&calls] { ++calls; }); });
  run_all(queue);
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(queue.empty());
  run_all(queue);
  EXPECT_EQ(calls, 1);
}

TEST(PostQueue, takes_nothing_while_some_of_what_was_taken_is_left) {
  PostQueue queue;
  std::vector<int> log;
  queue.push([&] {
    log.push_back(1);
    queue.push([&log] { log.push_back(3); });
    // As a nested run of the loop does.
    run_all(queue);
    log.push_back(9);
  });
  queue.push([&log] { log.push_back(2); });
  run_all(queue);
  EXPECT_EQ(log, (std::vector{1, 2, 9}));
  run_all(queue);
  EXPECT_EQ(log, (std::vector{1, 2, 9, 3}));
}

TEST(PostQueue, a_task_that_throws_is_gone_and_those_behind_it_are_not) {
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

TEST(PostQueue, destroys_unrun_what_is_left) {
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
  const std::size_t each = test::scaled(200'000);
  PostQueue queue;
  std::array<std::size_t, 4> next{};
  bool in_order = true;
  std::vector<std::jthread> producers;
  for (std::size_t producer = 0; producer < next.size(); ++producer) {
    producers.emplace_back([&, producer] {
      for (std::size_t i = 0; i < each; ++i) {
        queue.push([&, producer, i] { in_order = in_order && next[producer]++ == i; });
      }
    });
  }
  std::size_t total = 0;
  while (total < each * next.size()) {
    run_all(queue);
    total = next[0] + next[1] + next[2] + next[3];
    ASSERT_TRUE(in_order);
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace tambour
