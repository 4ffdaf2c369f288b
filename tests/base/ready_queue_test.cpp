// The intrusive ready queue and its links.
#include "base/ready_queue.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/detail/operation.h>

namespace tambour::ready_queue_test {
namespace {

using Log = std::vector<int>;

/// Logs that it ran and then invokes its action.
struct Item : detail::ReadyNode {
  Item(Log& its_log, int given_name) : detail::ReadyNode(&run), log(&its_log), name(given_name) {}
  static void run(detail::ReadyNode& ready) {
    auto& self = static_cast<Item&>(ready);
    self.log->push_back(self.name);
    if (const auto also = std::exchange(self.then, nullptr)) also();
  }

  Log* log;
  int name;
  std::function<void()> then;
};

TEST(ReadyQueue, runs_first_come_first_served) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2), c(log, 3);
  for (Item* item : {&a, &b, &c}) queue.push(*item);
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 2, 3}));
  EXPECT_FALSE(a.linked() || b.linked() || c.linked());
}

TEST(ReadyQueue, runs_higher_priorities_first) {
  Log log;
  detail::base::ReadyQueue queue;
  std::vector<Item> items;
  for (const int priority : {-2, 1, 0, 2, -1, 0, 2}) items.emplace_back(log, priority);
  for (Item& item : items) {
    item.set_priority(item.name);
    queue.push(item);
  }
  EXPECT_EQ(queue.highest_priority(), 2);
  EXPECT_EQ(queue.size(), items.size());
  queue.run_all();
  EXPECT_EQ(log, (Log{2, 2, 1, 0, 0, -1, -2}));
}

TEST(ReadyQueue, clamps_priorities) {
  Log log;
  Item item(log, 1);
  EXPECT_EQ(item.priority(), 0);
  item.set_priority(100);
  EXPECT_EQ(item.priority(), priority_max);
  item.set_priority(-100);
  EXPECT_EQ(item.priority(), priority_min);
}

TEST(ReadyQueue, a_queued_item_keeps_its_position_when_its_priority_changes) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2);
  queue.push(a);
  queue.push(b);
  b.set_priority(priority_max);
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 2}));
}

TEST(ReadyQueue, is_empty_once_the_last_item_is_removed) {
  Log log;
  detail::base::ReadyQueue queue;
  Item high(log, 1), low(log, 2);
  high.set_priority(2);
  low.set_priority(-2);
  queue.push(high);
  queue.push(low);
  high.unlink();
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.highest_priority(), -2);
  low.unlink();
  EXPECT_TRUE(queue.empty());
  queue.push(high);
  EXPECT_FALSE(queue.empty());
  queue.run_all();
  EXPECT_EQ(log, Log{1});
}

TEST(ReadyQueue, removes_items_from_any_position) {
  for (int left_out = 0; left_out < 3; ++left_out) {
    Log log;
    detail::base::ReadyQueue queue;
    std::vector<Item> items;
    for (int i = 0; i < 3; ++i) items.emplace_back(log, i);
    for (Item& item : items) queue.push(item);
    items[static_cast<std::size_t>(left_out)].unlink();
    queue.run_all();
    EXPECT_EQ(log.size(), 2U);
    EXPECT_EQ(std::ranges::count(log, left_out), 0);
  }
}

TEST(ReadyQueue, a_destroyed_item_is_removed) {
  Log log;
  detail::base::ReadyQueue queue;
  Item stays(log, 1);
  {
    Item goes(log, 2);
    queue.push(goes);
    queue.push(stays);
  }
  queue.run_all();
  EXPECT_EQ(log, Log{1});
}

TEST(ReadyQueue, an_item_may_destroy_itself_and_its_neighbours_while_it_runs) {
  Log log;
  detail::base::ReadyQueue queue;
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < 4; ++i) {
    items.push_back(std::make_unique<Item>(log, i));
    queue.push(*items.back());
  }
  items[0]->then = [&] {
    items[0].reset();
    items[1].reset();
    items[3].reset();
  };
  queue.run_all();
  EXPECT_EQ(log, (Log{0, 2}));
}

TEST(ReadyQueue, an_item_may_queue_itself_again_while_it_runs) {
  Log log;
  detail::base::ReadyQueue queue;
  Item item(log, 1);
  item.then = [&] { queue.push(item); };
  queue.push(item);
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 1}));
}

TEST(ReadyQueue, an_item_may_run_the_rest_while_it_runs) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2), c(log, 3);
  for (Item* item : {&a, &b, &c}) queue.push(*item);
  a.then = [&] {
    queue.run_all();
    log.push_back(9);
  };
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 2, 3, 9}));
}

TEST(ReadyQueue, keeps_the_rest_when_an_item_throws) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2);
  queue.push(a);
  queue.push(b);
  a.then = [] { throw 1; };
  EXPECT_THROW(queue.run_all(), int);
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 2}));
}

TEST(ReadyQueue, a_moved_item_keeps_its_position) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2), c(log, 3);
  for (Item* item : {&a, &b, &c}) queue.push(*item);
  const Item moved(std::move(b));
  EXPECT_TRUE(moved.linked());
  EXPECT_FALSE(b.linked());  // NOLINT(bugprone-use-after-move): the moved-from state is tested.
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 2, 3}));
}

TEST(ReadyQueue, a_move_onto_a_queued_hook_removes_that_hook) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2);
  queue.push(a);
  queue.push(b);
  static_cast<detail::ListHook<detail::ReadyNode>&>(a) =
      std::move(static_cast<detail::ListHook<detail::ReadyNode>&>(b));
  EXPECT_TRUE(a.linked());
  EXPECT_FALSE(b.linked());  // NOLINT(bugprone-use-after-move): the moved-from state is tested.
  queue.run_all();
  EXPECT_EQ(log, Log{1});
}

TEST(ReadyQueue, a_hook_moved_onto_itself_stays_queued) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1);
  queue.push(a);
  detail::ListHook<detail::ReadyNode>& hook = a;
  hook = std::move(static_cast<detail::ListHook<detail::ReadyNode>&>(a));
  queue.run_all();
  EXPECT_EQ(log, Log{1});
}

TEST(ReadyQueue, appends_another_queue) {
  Log log;
  detail::base::ReadyQueue queue, other, empty;
  Item a(log, 1), b(log, 2), c(log, 3), d(log, 4);
  queue.push(a);
  other.push(b);
  other.push(c);
  queue.take(other);
  EXPECT_TRUE(other.empty());
  queue.take(empty);
  queue.push(d);
  queue.run_all();
  EXPECT_EQ(log, (Log{1, 2, 3, 4}));
  // The queue that items were taken from is still usable.
  other.push(a);
  other.run_all();
  EXPECT_EQ(log.back(), 1);
}

TEST(ReadyQueue, queues_items_that_run_at_once_only_on_request) {
  Log log;
  detail::base::ReadyQueue queue;
  Item a(log, 1), b(log, 2), c(log, 3);
  b.run_at_once();
  queue.push(b);
  EXPECT_EQ(log, (Log{2}));
  EXPECT_FALSE(b.linked());
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.any_came()) << "no reason to wait";
  queue.reset_any_ran();
  EXPECT_FALSE(queue.any_came());
  for (Item* item : {&a, &c}) queue.push(*item);
  EXPECT_TRUE(queue.any_came());
  queue.push_to_wait(b);
  EXPECT_EQ(log, (Log{2}));
  queue.run_all();
  EXPECT_EQ(log, (Log{2, 1, 3, 2}));
  b.set_priority(1);
  queue.push(a);
  queue.push_to_wait(b);
  queue.run_all();
  EXPECT_EQ(log, (Log{2, 1, 3, 2, 2, 1}));
}

TEST(ReadyQueue, appends_another_queue_priority_by_priority) {
  Log log;
  detail::base::ReadyQueue queue, other;
  Item a(log, 1), b(log, 2), c(log, 3);
  c.set_priority(1);
  queue.push(a);
  other.push(b);
  other.push(c);
  queue.take(other);
  EXPECT_TRUE(other.empty());
  queue.run_all();
  EXPECT_EQ(log, (Log{3, 1, 2}));
}

TEST(ReadyQueue, leaves_its_items_unlinked_when_it_is_destroyed) {
  Log log;
  Item a(log, 1), b(log, 2);
  {
    detail::base::ReadyQueue queue;
    queue.push(a);
    queue.push(b);
  }
  EXPECT_FALSE(a.linked() || b.linked());
  EXPECT_TRUE(log.empty());
}

}  // namespace
}  // namespace tambour::ready_queue_test
