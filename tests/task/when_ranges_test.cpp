// when_all() and when_any() of ranges.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::when_ranges_test {
namespace {

using namespace std::chrono_literals;

class WhenRanges : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  std::vector<std::string> log;

  Task<int> number_after(Duration delay, int value) {
    const Result<> slept = co_await sleep_for(delay);
    log.push_back(std::to_string(value) + (slept ? "" : " stopped"));
    co_return value;
  }
  /// Tasks end in the order of their times, however late a busy machine starts them.
  Task<int> number_at(TimePoint time, int value) {
    EXPECT_TRUE(co_await sleep_until(time));
    log.push_back(std::to_string(value));
    co_return value;
  }
  Task<int> number(int value) {
    log.push_back(std::to_string(value));
    co_return value;
  }
  static Task<int> thrower(Duration delay) {
    co_await sleep_for(delay);
    throw std::runtime_error("thrown");
  }
};

TAMBOUR_ON_EVERY_BACKEND(WhenRanges);

using Tasks = std::vector<Task<int>>;
static_assert(AwaitableRange<Tasks>);
static_assert(AwaitableRange<std::array<SleepFor, 2>>);
// Tasks can only be moved out of an rvalue.
static_assert(!AwaitableRange<Tasks&>);
static_assert(!AwaitableRange<std::span<Task<int>>>);
static_assert(!AwaitableRange<std::vector<int>>);

TEST_P(WhenRanges, when_all_returns_results_in_the_order_of_the_range) {
  run([](WhenRanges& self) -> Task<> {
    Tasks tasks;
    const TimePoint now = self.loop().now();
    for (int i = 0; i < 4; ++i) tasks.push_back(self.number_at(now + (4 - i) * 2ms, i));
    const std::vector<int> numbers = co_await when_all(std::move(tasks));
    EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(self.log, (std::vector<std::string>{"3", "2", "1", "0"}));
  }(*this));
}

TEST_P(WhenRanges, views_of_awaitables_are_ranges) {
  run([](WhenRanges& self) -> Task<> {
    const std::vector<int> numbers{1, 2, 3};
    auto to_task = [&self](int value) { return self.number(value); };
    auto squares = co_await when_all(std::views::transform(numbers, to_task));
    EXPECT_EQ(squares, numbers);
    auto view = std::views::iota(4, 6) | std::views::transform(to_task);
    const std::vector<int> further = co_await when_all(view);
    EXPECT_EQ(further, (std::vector<int>{4, 5}));
    // Awaitables that are not tasks, and functions that return them.
    std::vector<SleepFor> sleeps;
    for (int i = 0; i < 3; ++i) sleeps.push_back(sleep_for(1ms));
    const auto slept = co_await when_all(std::move(sleeps));
    EXPECT_EQ(slept, std::vector<Result<>>(3));
    auto move_only = [](int value) -> Task<std::unique_ptr<int>> {
      co_return std::make_unique<int>(value);
    };
    const auto pointers = co_await when_all(std::views::transform(numbers, move_only));
    EXPECT_EQ(*pointers.at(2), 3);
    auto nothing = [](int) -> Task<> { co_return; };
    EXPECT_EQ((co_await when_all(std::views::transform(numbers, nothing))).size(), 3U);
  }(*this));
}

TEST_P(WhenRanges, when_all_of_an_empty_range_returns_at_once) {
  bool returned = false;
  spawn(
      loop(),
      [](bool& done) -> Task<> {
        EXPECT_TRUE((co_await when_all(Tasks())).empty());
        done = true;
      },
      std::ref(returned));
  EXPECT_TRUE(returned);
}

TEST_P(WhenRanges, when_all_stops_the_others_if_one_throws) {
  run([](WhenRanges& self) -> Task<> {
    Tasks tasks;
    tasks.push_back(self.number_after(1h, 1));
    tasks.push_back(thrower(1ms));
    tasks.push_back(self.number_after(1h, 2));
    EXPECT_THROW(co_await when_all(std::move(tasks)), std::runtime_error);
    std::ranges::sort(self.log);
    EXPECT_EQ(self.log, (std::vector<std::string>{"1 stopped", "2 stopped"}));
  }(*this));
}

TEST_P(WhenRanges, when_any_returns_the_first_result_and_its_index) {
  run([](WhenRanges& self) -> Task<> {
    Tasks tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(self.number_after(i == 1 ? 1ms : 1h, i * 10));
    const auto [index, value] = co_await when_any(std::move(tasks));
    EXPECT_EQ(index, 1U);
    EXPECT_EQ(value, 10);
    EXPECT_EQ(self.log.size(), 3U);
    EXPECT_EQ(self.log.front(), "10");
    // Tasks after one that ends at once are not started.
    const auto at_once =
        co_await when_any(std::views::iota(7, 9) | std::views::transform([&self](int number) {
                            return self.number(number);
                          }));
    EXPECT_EQ(at_once.index, 0U);
    EXPECT_EQ(self.log.back(), "7");
    Tasks throwing;
    throwing.push_back(self.number_after(1h, 1));
    throwing.push_back(thrower(1ms));
    EXPECT_THROW(co_await when_any(std::move(throwing)), std::runtime_error);
  }(*this));
}

TEST_P(WhenRanges, a_time_limit_stops_all_tasks_of_a_range) {
  run([](WhenRanges& self) -> Task<> {
    Tasks tasks;
    for (int i = 0; i < 1000; ++i) tasks.push_back(self.number_after(1h, i));
    const auto limited = co_await timeout(1ms, when_all(std::move(tasks)));
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(self.log.size(), 1000U);
  }(*this));
}

TEST_P(WhenRanges, destroying_the_awaiting_task_destroys_the_tasks) {
  auto witness = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = witness;
  auto wait = [](std::shared_ptr<int> own_local) -> Task<> {
    co_await sleep_for(1h);
    static_cast<void>(own_local);
  };
  {
    TaskScope scope(loop());
    std::vector<Task<>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(wait(witness));
    witness.reset();
    scope.spawn([](std::vector<Task<>> local) -> Task<> { co_await when_all(std::move(local)); },
                std::move(tasks));
    run_iterations();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST_P(WhenRanges, empty_tasks_and_when_any_of_an_empty_range_abort) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto any = [](Tasks tasks) -> Task<> { co_await when_any(std::move(tasks)); };
  EXPECT_DEATH(
      {
        EventLoop other(options());
        spawn(other, any(Tasks()));
      },
      "when_any.. got an empty range, in .*when_ranges_test.cpp");
  EXPECT_DEATH(
      {
        EventLoop other(options());
        spawn(other, any(Tasks(2)));
      },
      "got an empty Task, in .*when_ranges_test.cpp");
}

}  // namespace
}  // namespace tambour::when_ranges_test
