// What `co_return` accepts.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::co_return_test {
namespace {

Task<Result<>> check(int value) {
  if (value < 0) co_return std::unexpected(system_error(EINVAL));
  if (value == 0) co_return Result<>();
  co_return {};
}

Task<Result<int>> parse(int value) {
  if (value < 0) co_return std::unexpected(system_error(EINVAL));
  if (value == 0) co_return {};
  const Result<int> whole = value;
  if (value == 1) co_return whole;
  co_return value;
}

Task<Result<std::unique_ptr<int>>> make(int value) {
  auto kind = std::make_unique<int>(value);
  if (value < 0) co_return std::unexpected(system_error(EINVAL));
  co_return kind;
}

Task<Result<std::string>> convert(const char* text) { co_return text; }

Task<std::vector<int>> list(bool empty) {
  if (empty) co_return {};
  co_return {1, 2, 3};
}

struct Pair {
  int first = 0;
  std::string second;
};
Task<Pair> pair() { co_return {.first = 1, .second = "a string that is longer than the buffer"}; }

Task<std::optional<int>> maybe(int value) {
  if (value == 0) co_return std::nullopt;
  if (value < 0) co_return {};
  co_return value;
}

Task<std::unique_ptr<int>> null() { co_return nullptr; }

Task<int&> refer(int& to) { co_return to; }

/// Runs a task that does not wait.
template <class T>
std::optional<T> result_of(EventLoop& loop, Task<T> task) {
  std::optional<T> result;
  spawn(loop, [](Task<T> local, std::optional<T>& to) -> Task<> {
    to.emplace(co_await std::move(local));
  }(std::move(task), result));
  EXPECT_TRUE(detail::tasks_of(loop).empty());
  return result;
}

TEST(CoReturn, accepts_success_errors_and_values_in_a_result) {
  EventLoop loop;
  const Error invalid = system_error(EINVAL);
  EXPECT_TRUE(result_of(loop, check(1))->has_value());
  EXPECT_TRUE(result_of(loop, check(0))->has_value());
  EXPECT_EQ(result_of(loop, check(-1))->error(), invalid);
  EXPECT_EQ(result_of(loop, parse(7)), Result<int>(7));
  EXPECT_EQ(result_of(loop, parse(1)), Result<int>(1));
  EXPECT_EQ(result_of(loop, parse(0)), Result<int>(0));
  EXPECT_EQ(result_of(loop, parse(-1))->error(), invalid);
  EXPECT_EQ(**result_of(loop, make(3)).value(), 3);
  EXPECT_EQ(result_of(loop, make(-1))->error(), invalid);
  EXPECT_EQ(result_of(loop, convert("text")), Result<std::string>("text"));
}

TEST(CoReturn, accepts_initializer_lists_and_conversions) {
  EventLoop loop;
  EXPECT_EQ(result_of(loop, list(true)), std::vector<int>());
  EXPECT_EQ(result_of(loop, list(false)), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(result_of(loop, pair())->second, "a string that is longer than the buffer");
  EXPECT_EQ(result_of(loop, maybe(1)), std::optional<int>(1));
  EXPECT_EQ(result_of(loop, maybe(0)).value(), std::nullopt);
  EXPECT_EQ(result_of(loop, maybe(-1)).value(), std::nullopt);
  EXPECT_EQ(*result_of(loop, null()), nullptr);
}

TEST(CoReturn, keeps_references) {
  EventLoop loop;
  int here = 1;
  spawn(loop, [](int& value) -> Task<> { EXPECT_EQ(&co_await refer(value), &value); }(here));
}

}  // namespace
}  // namespace tambour::co_return_test
