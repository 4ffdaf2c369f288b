// Result and the functions that make errors and exceptions from it.
#include <tambour/base/result.h>

#include <cerrno>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tls/context.h>

namespace tambour::result_test {
namespace {

/// Returns the exception's message, and expects the error in it.
template <class T>
std::string message_of(Result<T> result, std::string_view context = {}) {
  const Error error = result.error();
  try {
    or_throw(std::move(result), context);
  } catch (const std::system_error& thrown) {
    EXPECT_EQ(thrown.code(), error);
    return thrown.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(OrThrow, returns_the_value) {
  EXPECT_EQ(or_throw(Result<int>(7)), 7);
  EXPECT_EQ(*or_throw(Result<std::unique_ptr<int>>(std::make_unique<int>(8)), "context"), 8);
  Result<std::string> named("text");
  EXPECT_EQ(or_throw(named), "text");
  EXPECT_EQ(*named, "text");
  or_throw(Result<>());
  static_assert(std::is_void_v<decltype(or_throw(Result<>()))>);
}

TEST(OrThrow, throws_the_error_with_its_message) {
  const std::string in_use = system_error(EADDRINUSE).message();
  EXPECT_EQ(message_of(Result<int>(std::unexpected(system_error(EADDRINUSE)))), in_use);
  EXPECT_EQ(message_of(Result<>(std::unexpected(system_error(EADDRINUSE)))), in_use);
}

TEST(OrThrow, puts_the_context_before_the_message) {
  EXPECT_EQ(
      message_of(Result<>(std::unexpected(system_error(EADDRINUSE))), "listen on 127.0.0.1:80"),
      "listen on 127.0.0.1:80: " + system_error(EADDRINUSE).message());
}

TEST(OrThrow, names_the_failure_of_tls) {
  const tls::Failure failure{.error = tls::ErrorCode::key_mismatch, .message = "server.key: other"};
  try {
    or_throw(Result<void, tls::Failure>(std::unexpected(failure)), "load");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::system_error& thrown) {
    EXPECT_EQ(thrown.code(), tls::ErrorCode::key_mismatch);
    EXPECT_EQ(std::string(thrown.what()).rfind("load: server.key: other", 0), 0U);
  }
}

Result<int> number_or_error(bool succeeds) {
  if (succeeds) return 3;
  return std::unexpected(system_error(EBUSY));
}

TEST(Results, hold_a_value_or_an_error) {
  EXPECT_EQ(number_or_error(true), 3);
  EXPECT_EQ(number_or_error(false), std::unexpected(system_error(EBUSY)));
  EXPECT_EQ(number_or_error(true), number_or_error(true));
  EXPECT_NE(number_or_error(true), number_or_error(false));
  EXPECT_EQ(number_or_error(false).value_or(4), 4);
  EXPECT_EQ(number_or_error(false).error(), std::errc::device_or_resource_busy);
  EXPECT_EQ(number_or_error(true).value(), 3);
  EXPECT_THROW(static_cast<void>(number_or_error(false).value()), std::system_error);
  Result<std::unique_ptr<int>> owned = std::make_unique<int>(5);
  EXPECT_EQ(*owned->get(), 5);
  const std::unique_ptr<int> moved = *std::move(owned);
  EXPECT_EQ(*moved, 5);
  owned.emplace(nullptr);
  EXPECT_TRUE(owned);
  owned = std::unexpected(system_error(EIO));
  EXPECT_FALSE(owned.has_value());
  static_assert(!std::is_convertible_v<std::string, Result<int>>);
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
}

TEST(Results, are_copied_and_not_converted_to_bool) {
  Result<bool> no = false;
  Result<bool> copy(no);
  EXPECT_EQ(*copy, false);
  EXPECT_EQ(*Result<bool>(std::move(no)), false);
  const std::expected<bool, Error> expected = copy;
  EXPECT_EQ(*expected, false);
  EXPECT_EQ(*Result<bool>(expected), false);
  EXPECT_EQ(*Result<bool>(Result<bool, tls::ErrorCode>(false)), false);
}

TEST(Results, convert_to_results_of_other_types) {
  const Result<long> wider = number_or_error(true);
  EXPECT_EQ(wider, 3L);
  const Result<long> error = number_or_error(false);
  EXPECT_EQ(error.error(), system_error(EBUSY));
  const std::expected<int, Error> expected = number_or_error(true);
  EXPECT_EQ(expected.value(), 3);
  const Result<Result<int, tls::ErrorCode>> nested = Result<int, tls::ErrorCode>(3);
  EXPECT_EQ(**nested, 3);
}

TEST(Results, have_the_monadic_functions_of_expected) {
  const auto half = [](int number) -> Result<int> {
    if (number % 2 != 0) return std::unexpected(system_error(EDOM));
    return number / 2;
  };
  EXPECT_EQ(Result<int>(8).and_then(half).and_then(half), 2);
  EXPECT_EQ(Result<int>(6).and_then(half).and_then(half).error(), system_error(EDOM));
  EXPECT_EQ(Result<int>(6).transform([](int number) { return std::to_string(number); }), "6");
  EXPECT_EQ(Result<>().transform([] { return 1; }), 1);
  int calls = 0;
  EXPECT_FALSE(number_or_error(false).transform([&](int) { ++calls; }));
  EXPECT_TRUE(number_or_error(true).transform([&](int) { ++calls; }));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(number_or_error(false).or_else([](Error) -> Result<int> { return 7; }), 7);
  EXPECT_EQ(number_or_error(true).or_else([](Error) -> Result<int> { return 7; }), 3);
  EXPECT_EQ(
      number_or_error(false).transform_error([](Error error) { return error.value(); }).error(),
      EBUSY);
  const Result<int> kept = 8;
  EXPECT_EQ(kept.and_then(half).transform(std::negate<>()), -4);
  EXPECT_EQ(kept, 8);
}

TEST(ResultsDeathTest, abort_with_the_error_if_the_value_is_used_unchecked) {
  Result<std::string> text = std::unexpected(system_error(ECONNREFUSED));
  constexpr const char* message =
      "^tambour: the value of a Result was used, but it holds the error .Connection refused. "
      ".generic 111.; test the Result first, or use or_throw";
  EXPECT_DEATH(static_cast<void>(*text), message);
  EXPECT_DEATH(static_cast<void>(*std::as_const(text)), message);
  EXPECT_DEATH(static_cast<void>(*std::move(text)), message);
  EXPECT_DEATH(static_cast<void>(text->size()), message);
  EXPECT_DEATH(*Result<>(std::unexpected(system_error(ECONNREFUSED))), message);
  const tls::Failure failure{.error = tls::ErrorCode::key_mismatch, .message = "server.key: other"};
  EXPECT_DEATH((*Result<void, tls::Failure>(std::unexpected(failure))),
               "the error .server.key: oth");
  EXPECT_DEATH((static_cast<void>(*Result<int, std::string>(std::unexpect, "x"))),
               "was used, but it holds an error; test");
  EXPECT_DEATH(static_cast<void>(Result<int>(1).error()), "error.. of a Result was used");
}

}  // namespace
}  // namespace tambour::result_test
