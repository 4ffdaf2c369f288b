// Basic authentication.
#include <string>

#include <gtest/gtest.h>

#include <tambour/http/auth.h>

namespace tambour::basic_auth_test {
namespace {

using http::BasicCredentials;

std::string formatted(std::string user, std::string password) {
  const auto value =
      http::format_basic_credentials({.user = std::move(user), .password = std::move(password)});
  return value ? *value : value.error().message();
}

TEST(HttpBasicAuthentication, the_examples_of_the_rfc) {
  EXPECT_EQ(formatted("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_EQ(formatted("test", "123\xC2\xA3"), "Basic dGVzdDoxMjPCow==");
  const auto parsed = http::parse_basic_credentials("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ== ");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->user, "Aladdin");
  EXPECT_EQ(parsed->password, "open sesame");
}

TEST(HttpBasicAuthentication, every_length_is_the_same_after_a_round_trip) {
  for (std::size_t length = 0; length < 10; ++length) {
    const std::string user(length, 'u');
    const std::string password = ":" + std::string(length / 2, '\xff');
    const auto parsed = http::parse_basic_credentials(formatted(user, password));
    ASSERT_TRUE(parsed) << length;
    EXPECT_EQ(parsed->user, user);
    EXPECT_EQ(parsed->password, password);
  }
}

TEST(HttpBasicAuthentication, malformed_values) {
  for (const char* const bad :
       {"", "Basic", "Basic ", "Bearer QWxhZGRpbg==", "Basic QWxhZGRpbg==", "Basic Y To=",
        "Basic YTpi=", "Basic YTp=", "Basic YTpiY", "Basic YTp!", "Basic YQA6Yg==", "Basic YTpj\n"})
    EXPECT_FALSE(http::parse_basic_credentials(bad)) << bad;
  EXPECT_FALSE(http::parse_basic_credentials("Basic YTpiZ==")) << "bits that are not zero";
  const std::string error = make_error_code(http::ErrorCode::bad_credentials).message();
  EXPECT_EQ(formatted("a:b", "c"), error);
  EXPECT_EQ(formatted("a", "b\nc"), error);
  EXPECT_EQ(formatted("a\tb", "c"), error);
}

TEST(HttpBasicAuthentication, secrets_are_compared) {
  EXPECT_TRUE(http::constant_time_equal("", ""));
  EXPECT_TRUE(http::constant_time_equal("secret", "secret"));
  EXPECT_FALSE(http::constant_time_equal("secret", "secreT"));
  EXPECT_FALSE(http::constant_time_equal("secret", "secrets"));
  EXPECT_FALSE(http::constant_time_equal("secret", ""));
}

}  // namespace
}  // namespace tambour::basic_auth_test
