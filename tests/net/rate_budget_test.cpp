// Time limits that a minimum rate extends.
#include "net/pace/rate_budget.h"

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/clock.h"

namespace tambour::rate_budget_test {
namespace {

using detail::net::RateBudget;

constexpr std::int64_t second = detail::base::ns_per_s;

TEST(RateBudget, a_limit_ends_after_the_start_unless_bytes_extend_it) {
  RateBudget budget;
  EXPECT_FALSE(budget.is_started());
  budget.start(10 * second);
  EXPECT_TRUE(budget.is_started());
  EXPECT_EQ(budget.deadline_ns(5 * second), 15 * second);
  budget.earn(200, 100, 13 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 17 * second);
  budget.earn(200, 0, 13 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 17 * second);
  budget.stop();
  EXPECT_FALSE(budget.is_started());
}

TEST(RateBudget, what_is_left_never_exceeds_the_limit) {
  RateBudget budget;
  budget.start(10 * second);
  budget.earn(1'000'000, 1, 12 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 17 * second);
  budget.earn(SIZE_MAX, 1, 13 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 18 * second);
}

TEST(RateBudget, no_time_is_spent_while_the_budget_is_suspended) {
  RateBudget budget;
  budget.resume(100 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 105 * second);
  budget.suspend(103 * second);  // 3 s are spent.
  budget.resume(200 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 202 * second);
  budget.earn(100, 100, 201 * second);  // 4 s are spent, and 1 s is earned.
  budget.suspend(201 * second);
  budget.resume(300 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 302 * second);
  budget.reset();
  budget.resume(400 * second);
  EXPECT_EQ(budget.deadline_ns(5 * second), 405 * second);
}

TEST(RateBudget, limits_beyond_the_range_of_the_clock_never_end) {
  RateBudget budget;
  budget.start(10 * second);
  EXPECT_EQ(budget.deadline_ns(INT64_MAX), detail::base::end_of_time_ns);
}

}  // namespace
}  // namespace tambour::rate_budget_test
