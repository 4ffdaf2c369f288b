// The table of timers, compared with a model: a multimap, which keeps equal deadlines in the order
// of insertion.
#include "common/timer_table.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::timer_table_test {
namespace {

struct Alarm {
  int position = 0;
  int name = 0;
};

bool fails = false;

struct Traits {
  static void* allocate(std::size_t bytes) noexcept { return fails ? nullptr : std::malloc(bytes); }
  static void free(void* memory) noexcept { std::free(memory); }
  static int position(const Alarm& alarm) noexcept { return alarm.position; }
  static void set_position(Alarm& alarm, int position) noexcept { alarm.position = position; }
};

using Table = compat::TimerTable<Alarm, Traits>;

/// A table and the model of it, driven by random calls.
class Pair {
 public:
  Pair(unsigned seed, int count) : random_(seed), alarms_(static_cast<std::size_t>(count)) {
    int name = 0;
    for (Alarm& alarm : alarms_) alarm.name = name++;
  }

  void change_one() {
    Alarm& alarm = alarms_[below(alarms_.size())];
    const auto deadline = now_ + static_cast<std::int64_t>(below(1000));
    if (alarm.position == 0) {
      ASSERT_TRUE(table_.reserve());
      table_.add(alarm, deadline);
    } else if (below(2) == 0) {
      table_.move(alarm, deadline);
      forget(alarm);
    } else {
      table_.remove(alarm);
      return forget(alarm);
    }
    model_.emplace(deadline, &alarm);
  }

  /// Removes every second alarm that expires, and moves the others.
  void expire() {
    now_ += static_cast<std::int64_t>(below(300));
    table_.expire(now_, [this](Alarm& alarm) {
      ASSERT_FALSE(model_.empty());
      ASSERT_LE(model_.begin()->first, now_);
      EXPECT_EQ(model_.begin()->second->name, alarm.name);
      model_.erase(model_.begin());
      if (alarm.name % 2 == 0) return table_.remove(alarm);
      const std::int64_t later = now_ + 1 + alarm.name % 7;
      table_.move(alarm, later);
      model_.emplace(later, &alarm);
    });
    EXPECT_TRUE(model_.empty() || model_.begin()->first > now_);
  }

  void remove_all() {
    table_.for_each([this](Alarm& alarm) { table_.remove(alarm); });
    model_.clear();
  }

  void compare() {
    EXPECT_EQ(table_.empty(), model_.empty());
    if (!model_.empty()) {
      EXPECT_LE(table_.next(), model_.begin()->first);
    }
    std::size_t count = 0;
    table_.for_each([&](const Alarm& alarm) {
      ++count;
      EXPECT_TRUE(table_.contains(alarm));
    });
    EXPECT_EQ(count, model_.size());
    for (const auto& [deadline, alarm] : model_) EXPECT_EQ(table_.deadline(*alarm), deadline);
  }

  std::size_t below(std::size_t end) { return random_() % end; }

 private:
  void forget(const Alarm& alarm) {
    for (auto model = model_.begin(); model != model_.end(); ++model) {
      if (model->second == &alarm) return static_cast<void>(model_.erase(model));
    }
  }

  std::mt19937 random_;
  std::vector<Alarm> alarms_;
  std::int64_t now_ = 1'000'000;
  std::multimap<std::int64_t, Alarm*> model_;
  Table table_;
};

TEST(TimerTable, behaves_like_the_model) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    // Of one alarm too: its removal empties the table, also during expire().
    Pair pair(seed, seed % 3 == 0 ? 1 : 400);
    for (int step = 0; step < 1500; ++step) {
      const std::size_t kind = pair.below(100);
      if (kind == 0) {
        pair.remove_all();
      } else if (kind < 6) {
        pair.expire();
      } else {
        pair.change_one();
      }
      if (step % 50 == 0) pair.compare();
    }
    pair.compare();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(TimerTable, an_alarm_can_be_added_after_a_removal_without_memory) {
  Table table;
  std::vector<Alarm> alarms(65);
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(table.reserve());
    table.add(alarms[i], 10);
  }
  fails = true;
  EXPECT_FALSE(table.reserve());
  table.remove(alarms[3]);
  EXPECT_TRUE(table.reserve());
  table.add(alarms[64], 10);
  EXPECT_FALSE(table.reserve());
  for (Alarm& alarm : alarms) {
    if (alarm.position != 0) table.remove(alarm);
  }
  EXPECT_TRUE(table.reserve());
  fails = false;
  EXPECT_TRUE(table.empty());
}

TEST(TimerTable, negative_deadlines_are_due) {
  Table table;
  std::vector<Alarm> alarms(2);
  table.expire(1000, [](Alarm&) { FAIL(); });
  std::int64_t deadline = -10;
  for (Alarm& alarm : alarms) {
    ASSERT_TRUE(table.reserve());
    table.add(alarm, deadline *= 2);
  }
  int count = 0;
  table.expire(2000, [&](Alarm& alarm) {
    ++count;
    table.remove(alarm);
  });
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace tambour::timer_table_test
