// The error categories of the library: their names, and a text for each code.
#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::error_categories_test {
namespace {

constexpr int values_end = 1000;

/// GCC and Clang write "Code::name" for an enumerator, and a cast for any other value.
template <auto value>
constexpr bool is_enumerator() {
  constexpr std::string_view function = __PRETTY_FUNCTION__;
  return function.find("value = (") == std::string_view::npos;
}

template <class Code, int... values>
std::size_t count_enumerators(std::integer_sequence<int, values...> /*values*/) {
  // Not a fold expression: Clang limits their operands to 256.
  const std::array<bool, sizeof...(values)> is_known{is_enumerator<static_cast<Code>(values)>()...};
  return static_cast<std::size_t>(std::ranges::count(is_known, true));
}

/// Expects that all enumerators, and no other values, have a text of their own.
template <class Code>
void expect_texts(const std::error_category& category) {
  const std::string unknown = category.message(values_end);
  std::set<std::string> texts;
  for (int value = -1; value < values_end; ++value) {
    const std::string text = category.message(value);
    if (text == unknown) continue;
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
  const auto codes = count_enumerators<Code>(std::make_integer_sequence<int, values_end>());
  EXPECT_GT(codes, 1U);
  EXPECT_EQ(texts.size(), codes) << category.name();
}

TEST(ErrorCategories, are_named_after_the_library) {
  EXPECT_STREQ(dns::error_category().name(), "tambour.dns");
  EXPECT_STREQ(http::error_category().name(), "tambour.http");
  EXPECT_STREQ(proxy_category().name(), "tambour.proxy");
  EXPECT_STREQ(resolver_category().name(), "tambour.resolver");
  EXPECT_STREQ(stream_category().name(), "tambour.stream");
  EXPECT_STREQ(tls::error_category().name(), "tambour.tls");
}

TEST(ErrorCategories, have_a_text_for_each_code) {
  expect_texts<dns::ErrorCode>(dns::error_category());
  expect_texts<http::ErrorCode>(http::error_category());
  expect_texts<ProxyError>(proxy_category());
  expect_texts<StreamError>(stream_category());
  expect_texts<tls::ErrorCode>(tls::error_category());
  EXPECT_EQ(Error(http::ErrorCode::missing_host).message(), "The request has no Host field");
  EXPECT_EQ(Error(StreamError::truncated).message(), "End of stream within a message");
  EXPECT_EQ(Error(-1, dns::error_category()).message(), "Unknown DNS error");
}

}  // namespace
}  // namespace tambour::error_categories_test
