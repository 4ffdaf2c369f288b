// The heap of wall-clock timers and of the libev drop-in, compared with a slow reference model.
#include "base/quad_heap.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/random.h"
#include "support/scale.h"

namespace tambour::quad_heap_test {
namespace {

struct Item {
  std::uint32_t index = 0;
  std::int64_t key = 0;
};

struct Place {
  static void set(Item& item, std::uint32_t index) { item.index = index; }
};

using Heap = detail::base::QuadHeap<Item, Place>;

TEST(QuadHeap, gives_back_keys_in_order) {
  Heap heap;
  std::vector<Item> items(1000);
  heap.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    heap.push(items[i], static_cast<std::int64_t>(i * 7919 % 1000));
  for (std::int64_t expected = 0; expected < 1000; ++expected) {
    ASSERT_EQ(heap.top_key(), expected);
    Item& top = heap.top();
    heap.pop();
    ASSERT_EQ(top.index, 0U);
  }
  EXPECT_TRUE(heap.empty());
}

TEST(QuadHeap, takes_the_extremes_of_its_keys) {
  Heap heap;
  Item least, zero, greatest;
  heap.reserve(3);
  heap.push(greatest, std::numeric_limits<std::int64_t>::max());
  heap.push(zero, 0);
  heap.push(least, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(&heap.top(), &least);
  heap.pop();
  EXPECT_EQ(&heap.top(), &zero);
  heap.pop();
  EXPECT_EQ(&heap.top(), &greatest);
}

TEST(QuadHeap, removes_items_that_match_a_predicate) {
  for (const int divisor : {1, 2, 3, 100}) {
    Heap heap;
    std::vector<Item> items(1000);
    heap.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i].key = static_cast<std::int64_t>(i * 7919 % 1000);
      heap.push(items[i], items[i].key);
    }
    heap.remove_if([divisor](const Item& item) { return item.key % divisor == 0; });
    EXPECT_FALSE(heap.any_of([divisor](const Item& item) { return item.key % divisor == 0; }));
    for (std::int64_t expected = 0; expected < 1000; ++expected) {
      if (expected % divisor == 0) continue;
      ASSERT_EQ(heap.top_key(), expected);
      heap.pop();
    }
    EXPECT_TRUE(heap.empty());
    for (const Item& item : items) EXPECT_EQ(item.index, 0U);
  }
}

TEST(QuadHeap, removes_every_position_of_every_small_size) {
  for (std::size_t size = 1; size <= 40; ++size) {
    for (std::size_t removed = 0; removed < size; ++removed) {
      Heap heap;
      std::vector<Item> items(size);
      heap.reserve(size);
      for (std::size_t i = 0; i < size; ++i)
        heap.push(items[i], static_cast<std::int64_t>(i * 31 % size));
      heap.remove(items[removed].index);
      std::int64_t last = -1;
      for (std::size_t left = size - 1; left > 0; --left) {
        ASSERT_NE(&heap.top(), &items[removed]);
        ASSERT_LE(last, heap.top_key());
        last = heap.top_key();
        heap.pop();
      }
      ASSERT_TRUE(heap.empty());
    }
  }
}

TEST(QuadHeap, drains_every_item_once) {
  Heap heap;
  std::vector<Item> items(100);
  heap.reserve(items.size());
  for (Item& item : items) heap.push(item, 1);
  std::set<Item*> seen;
  heap.drain([&](Item& item) { seen.insert(&item); });
  EXPECT_EQ(seen.size(), items.size());
  EXPECT_TRUE(heap.empty());
  for (const Item& item : items) EXPECT_EQ(item.index, 0U);
}

TEST(QuadHeap, takes_all_up_to_a_limit_from_every_small_size) {
  for (std::size_t size = 0; size <= 40; ++size) {
    for (std::size_t limit = 0; limit <= size; ++limit) {
      Heap heap;
      std::vector<Item> items(size);
      heap.reserve(size);
      // 41 is prime, so all keys differ.
      std::vector<std::int64_t> keys;
      for (Item& item : items) {
        keys.push_back(static_cast<std::int64_t>((keys.size() + 1) * 17 % 41));
        heap.push(item, keys.back());
      }
      std::ranges::sort(keys);
      const auto taken = heap.take_up_to(limit == 0 ? 0 : keys[limit - 1]);
      ASSERT_EQ(taken.size(), limit);
      for (std::size_t i = 0; i < limit; ++i) ASSERT_EQ(taken[i].key, keys[i]);
      for (std::size_t i = limit; i < size; ++i) {
        ASSERT_EQ(heap.top_key(), keys[i]);
        heap.pop();
      }
      ASSERT_TRUE(heap.empty());
    }
  }
}

TEST(QuadHeap, changes_all_keys_by_the_same_amount) {
  Heap heap;
  std::vector<Item> items(100);
  heap.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    heap.push(items[i], static_cast<std::int64_t>(i * 31 % 100));
  heap.change_keys([](Item&, std::int64_t key) { return key + 1000; });
  for (std::int64_t expected = 1000; expected < 1100; ++expected) {
    ASSERT_EQ(heap.top_key(), expected);
    heap.pop();
  }
}

TEST(QuadHeap, keeps_its_items_when_it_grows) {
  Heap heap;
  std::vector<Item> items(5000);
  for (std::size_t i = 0; i < items.size(); ++i) {
    heap.reserve(i + 1);
    heap.push(items[i], -static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(heap.size(), items.size());
  EXPECT_EQ(&heap.top(), &items.back());
}

/// A heap, its model, and items that may be in neither.
class Checked {
 public:
  explicit Checked(std::size_t items) {
    heap_.reserve(items);
    for (std::size_t i = 0; i < items; ++i) items_.push_back(std::make_unique<Item>());
  }

  void step(test::Random& random) {
    std::unique_ptr<Item>& slot = items_[random.below(items_.size())];
    Item& item = *slot;
    // Few distinct keys, so that many are equal.
    const auto key = static_cast<std::int64_t>(random.below(500));
    if (item.index == 0) {
      item.key = key;
      heap_.push(item, key);
      model_.insert(key);
      return;
    }
    switch (random.below(6)) {
      case 0:
        take_from_model(item);
        heap_.remove(item.index);
        break;
      case 1:
        if (key < item.key) {
          change_key(item, key);
          heap_.lower_key(item.index, key);
        }
        break;
      case 2:
        if (Item& top = heap_.top(); key > top.key) {
          change_key(top, key);
          heap_.raise_top_key(key);
        }
        break;
      case 3: {
        auto moved = std::make_unique<Item>(item);
        heap_.replace(item.index, *moved);
        slot = std::move(moved);
        break;
      }
      case 4:
        // Takes a few items at a time, so that the heap does not stay small.
        if (random.below(items_.size()) < 50) take_up_to(heap_.top_key() + key / 20);
        break;
      default:
        take_from_model(heap_.top());
        heap_.pop();
    }
  }

  [[nodiscard]] bool agrees() const {
    if (heap_.size() != model_.size() || heap_.empty() != model_.empty()) return false;
    return model_.empty() ||
           (heap_.top_key() == *model_.begin() && heap_.top().key == heap_.top_key());
  }

 private:
  void take_up_to(std::int64_t limit) {
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const Heap::Entry& taken : heap_.take_up_to(limit)) {
      EXPECT_LE(last, taken.key) << "out of order";
      EXPECT_LE(taken.key, limit);
      EXPECT_EQ(taken.key, taken.item->key);
      EXPECT_EQ(taken.item->index, 0U);
      last = taken.key;
      take_from_model(*taken.item);
    }
    EXPECT_TRUE(heap_.empty() || heap_.top_key() > limit);
  }
  void take_from_model(const Item& item) { model_.erase(model_.find(item.key)); }
  void change_key(Item& item, std::int64_t key) {
    take_from_model(item);
    item.key = key;
    model_.insert(key);
  }

  Heap heap_;
  std::multiset<std::int64_t> model_;
  std::vector<std::unique_ptr<Item>> items_;
};

TEST(QuadHeap, agrees_with_a_multiset_over_a_million_random_operations) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  // Small heaps change shape most often; large ones have the most levels.
  for (const std::size_t items : {5U, 100U, 10'000U}) {
    Checked checked(items);
    for (std::size_t i = 0; i < test::scaled(1'000'000); ++i) {
      checked.step(random);
      ASSERT_TRUE(checked.agrees()) << "operation " << i << ", " << items << " items";
    }
  }
}

}  // namespace
}  // namespace tambour::quad_heap_test
