// The table of timers, compared with a model: a multimap, which keeps equal deadlines in the order
// of insertion.
#include "common/timer_table.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::timer_table_test {
namespace {

struct Alarm {
  int position = 0;
  int name = 0;
  std::int64_t deadline = 0;
};

bool fails = false;

struct Traits {
  static void* allocate(std::size_t bytes) noexcept { return fails ? nullptr : std::malloc(bytes); }
  static void free(void* memory) noexcept { std::free(memory); }
  static int position(const Alarm& alarm) noexcept { return alarm.position; }
  static void set_position(Alarm& alarm, int position) noexcept { alarm.position = position; }
  static std::int64_t deadline(const Alarm& alarm) noexcept { return alarm.deadline; }
  static void prefetch(const Alarm& alarm) noexcept { __builtin_prefetch(&alarm); }
};

using Table = compat::TimerTable<Alarm, Traits>;

/// A table and the model of it, driven by random calls.
class Pair {
 public:
  Pair(unsigned seed, int count, std::size_t range)
      : random_(seed), range_(range), alarms_(static_cast<std::size_t>(count)) {
    int name = 0;
    for (Alarm& alarm : alarms_) alarm.name = name++;
  }

  void change_one() {
    Alarm& alarm = alarms_[below(alarms_.size())];
    // Some are due at once, before the time of the wheel.
    const auto deadline = now_ + static_cast<std::int64_t>(below(range_)) - 50;
    if (alarm.position == 0) {
      alarm.deadline = deadline;
      ASSERT_TRUE(table_.reserve());
      table_.add(alarm);
    } else if (below(2) == 0) {
      alarm.deadline = deadline;
      table_.move(alarm);
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
      alarm.deadline = now_ + 1 + alarm.name % 7;
      table_.move(alarm);
      model_.emplace(alarm.deadline, &alarm);
    });
    EXPECT_TRUE(model_.empty() || model_.begin()->first > now_);
  }

  void remove_all() {
    table_.for_each([this](Alarm& alarm) { table_.remove(alarm); });
    model_.clear();
  }

  /// As ev_suspend() and ev_resume() do.
  void shift() {
    const auto by = static_cast<std::int64_t>(below(500));
    now_ += by;
    std::multimap<std::int64_t, Alarm*> shifted;
    for (const auto& [deadline, alarm] : model_) {
      alarm->deadline += by;
      shifted.emplace(alarm->deadline, alarm);
    }
    model_ = std::move(shifted);
    table_.move_all();
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
  }

  std::size_t below(std::size_t end) { return random_() % end; }

 private:
  void forget(const Alarm& alarm) {
    for (auto model = model_.begin(); model != model_.end(); ++model) {
      if (model->second == &alarm) return static_cast<void>(model_.erase(model));
    }
  }

  std::mt19937 random_;
  std::size_t range_;  ///< Of the deadlines: more than 64 equal ones, or timers in many slots.
  std::vector<Alarm> alarms_;
  std::int64_t now_ = 1'000'000;
  std::multimap<std::int64_t, Alarm*> model_;
  Table table_;
};

TEST(TimerTable, behaves_like_the_model) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    // Of one alarm too: its removal empties the table, also during expire().
    Pair pair(seed, seed % 3 == 0 ? 1 : 400, seed % 2 == 0 ? 1000 : 1'000'000);
    for (int step = 0; step < 1500; ++step) {
      const std::size_t kind = pair.below(100);
      if (kind == 0) {
        pair.remove_all();
      } else if (kind < 6) {
        pair.expire();
      } else if (kind == 6) {
        pair.shift();
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
  std::vector<Alarm> alarms(1000);
  ASSERT_TRUE(table.reserve());
  fails = true;
  std::size_t count = 0;
  // Each in a slot of its own, so that each needs a page.
  for (; table.reserve(); ++count) {
    alarms[count].deadline = std::int64_t{1} << count;
    table.add(alarms[count]);
  }
  EXPECT_GT(count, 1U);
  table.remove(alarms[3]);
  EXPECT_TRUE(table.reserve());
  alarms[count].deadline = 10;
  table.add(alarms[count]);
  EXPECT_FALSE(table.reserve());
  // What is moved needs no memory, neither by the caller nor when the time advances.
  for (std::size_t i = 0; i <= count; ++i) {
    if (alarms[i].position == 0) continue;
    alarms[i].deadline += 64 * 64;
    table.move(alarms[i]);
  }
  std::int64_t latest = 0;
  table.expire(std::int64_t{1} << count, [&](Alarm& alarm) {
    EXPECT_LE(latest, alarm.deadline);
    latest = alarm.deadline;
    table.remove(alarm);
  });
  for (Alarm& alarm : alarms) {
    if (alarm.position != 0) table.remove(alarm);
  }
  EXPECT_TRUE(table.reserve());
  fails = false;
  EXPECT_TRUE(table.empty());
}

TEST(TimerTable, deadlines_before_the_time_expire_in_order) {
  Table table;
  std::vector<Alarm> alarms(300);
  table.expire(1000, [](Alarm&) { FAIL(); });
  for (std::size_t i = 0; i < alarms.size(); ++i) {
    alarms[i].deadline = static_cast<std::int64_t>(i * 7 % 100);
    alarms[i].name = static_cast<int>(i);
    ASSERT_TRUE(table.reserve());
    table.add(alarms[i]);
  }
  EXPECT_LE(table.next(), 1000);
  int count = 0;
  const Alarm* before = nullptr;
  table.expire(2000, [&](Alarm& alarm) {
    ++count;
    if (before != nullptr) {
      EXPECT_LE(before->deadline, alarm.deadline);
      EXPECT_TRUE(before->deadline < alarm.deadline || before->name < alarm.name);
    }
    before = &alarm;
    table.remove(alarm);
  });
  EXPECT_EQ(count, 300);
}

// ev_timer_set() of an active timer is an error of the program, which must cost it no more than the
// time of that timer.
TEST(TimerTable, a_deadline_that_was_changed_without_a_move_does_no_harm) {
  for (const bool later : {true, false}) {
    Table table;
    std::vector<Alarm> alarms(200);
    for (std::size_t i = 0; i < alarms.size(); ++i) {
      alarms[i].deadline = static_cast<std::int64_t>(5000 + i % 90);
      ASSERT_TRUE(table.reserve());
      table.add(alarms[i]);
    }
    for (std::size_t i = 0; i < alarms.size(); i += 3) {
      alarms[i].deadline = later ? 1'000'000 : 3;
      EXPECT_FALSE(table.contains(alarms[i]));
    }
    int count = 0;
    for (const std::int64_t now : {4000, 5040, 6000, 2'000'000, 2'000'001}) {
      table.expire(now, [&](Alarm& alarm) {
        ++count;
        EXPECT_LE(alarm.deadline, now);
        table.remove(alarm);
      });
    }
    EXPECT_EQ(count, 200);
  }
}

}  // namespace
}  // namespace tambour::timer_table_test
