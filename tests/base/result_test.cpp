// Result and the functions that make errors and exceptions from it.
#include <tambour/base/result.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tambour::result_test
