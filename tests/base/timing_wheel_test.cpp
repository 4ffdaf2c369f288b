// The timing wheel, compared with a model: a multimap, which keeps equal deadlines in the order of
// insertion.
#include "base/timing_wheel.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::timing_wheel_test {
namespace {

using detail::base::end_of_time_ns;
using detail::base::TimingWheel;

struct Item : detail::WheelNode {
  explicit Item(int item_name = 0) noexcept : name(item_name) {}
  int name;
};

using Names = std::vector<int>;

Names expire(TimingWheel& wheel, std::int64_t now_ns) {
  Names names;
  wheel.expire(now_ns, [&](detail::WheelNode& node) {
    EXPECT_FALSE(node.in_wheel());
    EXPECT_LE(node.deadline_ns(), now_ns);
    names.push_back(static_cast<Item&>(node).name);
  });
  return names;
}

/// Items that are named by their position.
std::vector<Item> make_items(int count) {
  std::vector<Item> items;
  items.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) items.emplace_back(i);
  return items;
}

TEST(TimingWheel, expires_in_the_order_of_deadlines_and_never_early) {
  TimingWheel wheel;
  auto items = make_items(1000);
  for (Item& item : items) wheel.arm(item, 1'000'000'000 + item.name * 7919 % 1000);
  EXPECT_EQ(wheel.size(), 1000U);
  EXPECT_EQ(expire(wheel, 999'999'999), Names());
  for (std::int64_t after = 0; after < 1000; ++after) {
    ASSERT_EQ(wheel.next_ns(), 1'000'000'000 + after);
    const Names names = expire(wheel, 1'000'000'000 + after);
    ASSERT_EQ(names.size(), 1U);
    ASSERT_EQ(names[0] * 7919 % 1000, after);
  }
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_EQ(wheel.next_ns(), end_of_time_ns);
}

TEST(TimingWheel, expires_equal_deadlines_in_the_order_in_which_they_were_armed) {
  TimingWheel wheel;
  auto items = make_items(5);
  constexpr std::int64_t deadline = 3'000'000'000;
  wheel.arm(items[3], deadline);
  wheel.arm(items[0], deadline);
  // An earlier deadline in the same slot makes the list unsorted.
  wheel.arm(items[4], deadline - 1);
  EXPECT_EQ(expire(wheel, deadline - 1'000'000), Names());
  wheel.arm(items[2], deadline);
  EXPECT_EQ(expire(wheel, deadline - 10), Names());
  wheel.arm(items[1], deadline);
  // Armed again: behind the others.
  wheel.arm(items[3], deadline);
  EXPECT_EQ(expire(wheel, deadline), (Names{4, 0, 2, 1, 3}));
}

TEST(TimingWheel, sorts_as_many_timers_of_one_slot_as_there_are) {
  for (const int count : {2, 63, 64, 65, 1000, 5000}) {
    TimingWheel wheel;
    expire(wheel, std::int64_t{1} << 40);
    auto items = make_items(count);
    std::vector<std::pair<std::int64_t, int>> expected;
    for (Item& item : items) {
      const std::int64_t deadline = (std::int64_t{3} << 40) + std::int64_t{item.name} * 7919 % 977;
      expected.emplace_back(deadline, item.name);
      wheel.arm(item, deadline);
    }
    std::ranges::stable_sort(expected, {}, &std::pair<std::int64_t, int>::first);
    const Names names = expire(wheel, std::int64_t{1} << 50);
    ASSERT_EQ(names.size(), expected.size());
    for (std::size_t i = 0; i < names.size(); ++i) ASSERT_EQ(names[i], expected[i].second) << count;
  }
}

TEST(TimingWheel, expires_past_deadlines_before_others) {
  TimingWheel wheel;
  constexpr std::int64_t now = 5'000'000'000;
  expire(wheel, now);
  auto items = make_items(7);
  wheel.arm(items[0], now + 1);
  wheel.arm(items[1], now);
  wheel.arm(items[2], now - 1000);
  wheel.arm(items[3], 0);
  wheel.arm(items[4], now - 1000);
  wheel.arm(items[5], now - 2'000'000'000);
  wheel.arm(items[6], now + 2);
  EXPECT_LE(wheel.next_ns(), now);
  EXPECT_EQ(expire(wheel, now), (Names{3, 5, 2, 4, 1}));
  EXPECT_EQ(wheel.next_ns(), now + 1);
  EXPECT_EQ(expire(wheel, now + 2), (Names{0, 6}));
}

TEST(TimingWheel, never_expires_the_end_of_time) {
  TimingWheel wheel;
  auto items = make_items(3);
  wheel.arm(items[0], end_of_time_ns);
  wheel.arm(items[1], end_of_time_ns - 1);
  wheel.arm(items[2], end_of_time_ns / 2);
  EXPECT_EQ(expire(wheel, end_of_time_ns), (Names{2, 1}));
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(wheel.next_ns(), end_of_time_ns);
  wheel.cancel(items[0]);
  EXPECT_EQ(expire(wheel, end_of_time_ns), Names());
}

TEST(TimingWheel, crosses_the_boundary_of_every_level) {
  for (int shift = 1; shift < 63; ++shift) {
    const std::int64_t boundary = std::int64_t{1} << shift;
    TimingWheel wheel;
    expire(wheel, boundary - 1);
    auto items = make_items(4);
    wheel.arm(items[2], boundary + 1);
    wheel.arm(items[3], boundary / 2 * 3 + 5);
    wheel.arm(items[0], boundary - 1);
    wheel.arm(items[1], boundary);
    ASSERT_EQ(wheel.next_ns(), boundary - 1);
    ASSERT_EQ(expire(wheel, boundary - 1), (Names{0}));
    ASSERT_EQ(wheel.next_ns(), boundary);
    ASSERT_EQ(expire(wheel, boundary), (Names{1}));
    ASSERT_EQ(wheel.next_ns(), boundary + 1);
    ASSERT_EQ(expire(wheel, boundary / 2 * 3 + 5), (Names{2, 3}));
  }
}

// No wakeup at the beginning of a slot: the loop would wait again without having invoked anything.
TEST(TimingWheel, states_the_exact_deadline_after_the_earliest_was_cancelled) {
  TimingWheel wheel;
  auto items = make_items(TimingWheel::search_max);
  // Descending deadlines in one slot.
  for (Item& item : items) wheel.arm(item, 100'000'000'000 - item.name * 1'000'000);
  for (int last = TimingWheel::search_max - 1; last > 0; --last) {
    const auto index = static_cast<std::size_t>(last);
    ASSERT_EQ(wheel.next_ns(), items[index].deadline_ns());
    wheel.cancel(items[index]);
    ASSERT_EQ(wheel.next_ns(), items[index - 1].deadline_ns());
  }
}

TEST(TimingWheel, states_the_exact_deadline_of_many_timers_armed_in_order) {
  TimingWheel wheel;
  auto items = make_items(10'000);
  // As of connections with the same idle timeout, each of which is postponed in turn.
  for (Item& item : items) wheel.arm(item, 30'000'000'000 + item.name * 1000);
  for (std::size_t i = 0; i + 1 < items.size(); ++i) {
    wheel.arm(items[i], 60'000'000'000 + items[i].name * 1000);
    ASSERT_EQ(wheel.next_ns(), items[i + 1].deadline_ns());
  }
}

TEST(TimingWheel, states_a_lower_bound_within_the_slot_of_many_unordered_timers) {
  TimingWheel wheel;
  auto items = make_items(TimingWheel::search_max + 2);
  for (Item& item : items) wheel.arm(item, 100'000'000'000 - item.name * 1'000'000);
  const std::int64_t earliest = items.back().deadline_ns();
  wheel.cancel(items.back());
  EXPECT_EQ(wheel.next_ns(), earliest);
  EXPECT_EQ(expire(wheel, earliest), Names());
  // The wheel's time has entered the slot, so the next statement is exact.
  EXPECT_EQ(wheel.next_ns(), earliest + 1'000'000);
}

TEST(TimingWheel, shifts_all_deadlines) {
  TimingWheel wheel;
  auto items = make_items(4);
  wheel.arm(items[0], 2000);
  wheel.arm(items[1], 1000);
  wheel.arm(items[2], end_of_time_ns - 10);
  wheel.arm(items[3], 1000);
  wheel.shift(5'000'000'000);
  EXPECT_EQ(wheel.next_ns(), 5'000'001'000);
  EXPECT_EQ(items[0].deadline_ns(), 5'000'002'000);
  EXPECT_EQ(items[2].deadline_ns(), end_of_time_ns);
  EXPECT_EQ(expire(wheel, 5'000'000'999), Names());
  EXPECT_EQ(expire(wheel, 5'000'002'000), (Names{1, 3, 0}));
  EXPECT_EQ(expire(wheel, end_of_time_ns), Names());
  EXPECT_EQ(wheel.size(), 1U);
}

TEST(TimingWheel, drains_every_node_once) {
  TimingWheel wheel;
  expire(wheel, 1'000'000);
  auto items = make_items(100);
  for (Item& item : items) wheel.arm(item, std::int64_t{1} << (item.name % 62));
  Names names;
  wheel.drain([&](detail::WheelNode& node) { names.push_back(static_cast<Item&>(node).name); });
  std::ranges::sort(names);
  EXPECT_EQ(names.size(), 100U);
  EXPECT_EQ(std::ranges::unique(names).size(), 0U);
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_EQ(wheel.next_ns(), end_of_time_ns);
  wheel.arm(items[5], 2'000'000);
  EXPECT_EQ(wheel.next_ns(), 2'000'000);
  wheel.cancel(items[5]);
}

TEST(TimingWheel, keeps_the_position_of_a_node_that_moves) {
  TimingWheel wheel;
  Item first(1);
  auto moved = std::make_unique<Item>(2);
  Item last(3);
  wheel.arm(first, 100);
  wheel.arm(*moved, 100);
  wheel.arm(last, 100);
  Item here(std::move(*moved));
  moved.reset();
  EXPECT_TRUE(here.in_wheel());
  EXPECT_EQ(expire(wheel, 100), (Names{1, 2, 3}));
}

/// Applies the same operations to a wheel and to a model.
class Pair {
 public:
  explicit Pair(std::size_t count) : items_(count) {
    for (std::size_t i = 0; i < count; ++i) items_[i] = std::make_unique<Item>(static_cast<int>(i));
  }
  ~Pair() {
    wheel_.drain([](detail::WheelNode&) {});
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void step(test::Random& random) {
    switch (random.below(12)) {
      case 0:
      case 1:
        return cancel(name(random));
      case 2:
        return advance(random);
      case 3:
        return move(name(random));
      case 4:
        if (random.below(100) == 0) return shift(static_cast<std::int64_t>(random.below(1 << 30)));
        return check_next();
      default:
        return arm(name(random), deadline(random));
    }
  }

  void check_next() {
    const std::int64_t stated = wheel_.next_ns();
    if (model_.empty()) {
      ASSERT_EQ(stated, end_of_time_ns);
    } else if (model_.begin()->first < time_) {
      ASSERT_LE(stated, model_.begin()->first);
    } else {
      ASSERT_LE(stated, model_.begin()->first);
      ASSERT_GE(stated, std::min(time_, model_.begin()->first));
    }
  }

  void expire_until(std::int64_t now) {
    time_ = now;
    wheel_.expire(now, [this](detail::WheelNode& node) { expired(static_cast<Item&>(node)); });
    ASSERT_EQ(wheel_.size(), model_.size());
    if (model_.empty() || model_.begin()->first == end_of_time_ns) return;
    ASSERT_GT(model_.begin()->first, now);
  }

  [[nodiscard]] std::size_t expiries() const { return expiries_; }

 private:
  using Model = std::multimap<std::int64_t, int>;

  std::size_t name(test::Random& random) const { return random.below(items_.size()); }

  /// Mostly soon, but up to the end of time; sometimes equal to another one, or in the past.
  std::int64_t deadline(test::Random& random) {
    const std::uint64_t spread = std::uint64_t{1} << random.below(random.below(4) == 0 ? 63 : 34);
    const auto offset = static_cast<std::int64_t>(random.below(spread));
    switch (random.below(20)) {
      case 0:
        return end_of_time_ns - static_cast<std::int64_t>(random.below(3));
      case 1:
        return std::max(time_ - offset, std::int64_t{0});
      case 2:
      case 3:
        return last_;
      default:
        return last_ = detail::base::saturating_add(time_, offset);
    }
  }

  void arm(std::size_t index, std::int64_t at) {
    forget(index);
    model_.emplace(at, static_cast<int>(index));
    wheel_.arm(*items_[index], at);
  }

  void cancel(std::size_t index) {
    ASSERT_EQ(forget(index), items_[index]->in_wheel());
    if (items_[index]->in_wheel()) wheel_.cancel(*items_[index]);
  }

  void move(std::size_t index) {
    items_[index] = std::make_unique<Item>(std::move(*items_[index]));
  }

  void shift(std::int64_t by) {
    Model shifted;
    // Equal deadlines at the end of time follow each other in the order of the former ones.
    for (const auto& [at, selected] : model_)
      shifted.emplace(detail::base::saturating_add(at, by), selected);
    model_ = std::move(shifted);
    wheel_.shift(by);
  }

  void advance(test::Random& random) {
    const auto choice = random.below(10);
    const auto step = [&random](int width) {
      return static_cast<std::int64_t>(random.below(std::uint64_t{1} << width));
    };
    std::int64_t now = time_;
    if (choice < 5 && !model_.empty()) now = std::max(now, model_.begin()->first);
    if (choice == 6) now = detail::base::saturating_add(now, step(12));
    if (choice == 7) now = detail::base::saturating_add(now, step(30));
    if (choice == 8 && random.below(20) == 0) now = detail::base::saturating_add(now, step(45));
    if (now > end_of_time_ns / 2 && random.below(1000) != 0) return;
    expire_until(now);
  }

  void expired(Item& item) {
    ASSERT_FALSE(model_.empty());
    ASSERT_EQ(model_.begin()->second, item.name);
    ASSERT_EQ(model_.begin()->first, item.deadline_ns());
    ASSERT_LE(item.deadline_ns(), time_);
    model_.erase(model_.begin());
    ++expiries_;
    // As a repeating timer does.
    if (item.name % 8 == 0 && time_ < end_of_time_ns - 1)
      arm(static_cast<std::size_t>(item.name),
          detail::base::saturating_add(time_, 1 + item.name * 1000));
  }

  bool forget(std::size_t index) {
    const auto [first, last] = model_.equal_range(items_[index]->deadline_ns());
    for (auto entry = first; entry != last; ++entry) {
      if (entry->second != static_cast<int>(index)) continue;
      model_.erase(entry);
      return true;
    }
    return false;
  }

  std::vector<std::unique_ptr<Item>> items_;
  TimingWheel wheel_;
  Model model_;
  std::int64_t time_ = 0;
  std::int64_t last_ = 0;
  std::size_t expiries_ = 0;
};

TEST(TimingWheel, agrees_with_a_multimap_over_a_million_random_operations) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  std::size_t expiries = 0;
  for (const std::size_t count : {3, 30, 300, 3000}) {
    for (int round = 0; round < 10; ++round) {
      Pair pair(count);
      for (std::size_t i = 0; i < test::scaled(25'000); ++i) {
        pair.step(random);
        ASSERT_FALSE(testing::Test::HasFailure()) << "operation " << i << " of " << count;
      }
      pair.expire_until(end_of_time_ns);
      expiries += pair.expiries();
    }
  }
  EXPECT_GT(expiries, 1000U);
}

}  // namespace
}  // namespace tambour::timing_wheel_test
