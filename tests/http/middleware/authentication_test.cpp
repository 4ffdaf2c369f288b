// Basic and Bearer authentication.
#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::authentication_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

class HttpAuthentication : public test::Serving {
 public:
  void serve_with(http::Middleware middleware) {
    server_.reset();
    http::Router router;
    router.use(std::move(middleware));
    router.get("/", [](Request& request, Response& response) {
      response.send("user:" + std::string(http::authenticated_user(request)));
    });
    serve(std::move(router).handler());
  }
  /// The status, the challenge, and the body of a successful response.
  std::string answer(const std::string& fields) {
    const std::string text =
        ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
    std::string result = text.substr(9, 3);
    const std::string name = "WWW-Authenticate: ";
    if (const std::size_t at = text.find(name); at != std::string::npos)
      result += " " + text.substr(at + name.size(), text.find("\r\n", at) - at - name.size());
    if (result == "200") result += " " + text.substr(text.find("\r\n\r\n") + 4);
    return result;
  }
  static std::string basic(const std::string& user, const std::string& password) {
    return "Authorization: " +
           or_throw(http::format_basic_credentials({.user = user, .password = password})) + "\r\n";
  }
};

TEST_F(HttpAuthentication, basic_asks_for_name_and_password) {
  serve_with(or_throw(http::basic_authentication(
      "the \"admin\"", http::fixed_credentials({{"ann", "secret"}, {"bob", "other"}}))));
  const std::string asks = R"(401 Basic realm="the \"admin\"", charset="UTF-8")";
  EXPECT_EQ(answer(""), asks);
  EXPECT_EQ(answer(basic("ann", "secret")), "200 user:ann");
  EXPECT_EQ(answer(basic("bob", "other")), "200 user:bob");
  EXPECT_EQ(answer(basic("ann", "other")), asks);
  EXPECT_EQ(answer(basic("ann", "")), asks);
  EXPECT_EQ(answer(basic("", "secret")), asks);
  EXPECT_EQ(answer("Authorization: Basic !!\r\n"), asks);
  EXPECT_EQ(answer("Authorization: Bearer secret\r\n"), asks);
  EXPECT_EQ(answer(basic("ann", "secret") + basic("ann", "secret")), asks);
}

TEST_F(HttpAuthentication, bearer_says_why_a_token_is_refused) {
  serve_with(or_throw(http::bearer_authentication("api", http::fixed_tokens({"t0k-en==", "x"}))));
  EXPECT_EQ(answer(""), "401 Bearer realm=\"api\"");
  EXPECT_EQ(answer(basic("ann", "x")), "401 Bearer realm=\"api\"");
  EXPECT_EQ(answer("Authorization: Bearer t0k-en==\r\n"), "200 user:");
  EXPECT_EQ(answer("Authorization: bearer   x\r\n"), "200 user:");
  for (const char* token : {"t0k-en=", "t0k-en", "X", "xx"})
    EXPECT_EQ(answer("Authorization: Bearer " + std::string(token) + "\r\n"),
              "401 Bearer realm=\"api\", error=\"invalid_token\"")
        << token;
  const std::string invalid = "400 Bearer realm=\"api\", error=\"invalid_request\"";
  EXPECT_EQ(answer("Authorization: Bearer\r\n"), invalid);
  EXPECT_EQ(answer("Authorization: Bearer a b\r\n"), invalid);
  EXPECT_EQ(answer("Authorization: Bearer x\r\nAuthorization: Bearer x\r\n"), invalid);
}

TEST_F(HttpAuthentication, verifiers_may_wait) {
  serve_with(or_throw(http::bearer_authentication(
      "api", [](Request& request, const std::string& token) -> Task<bool> {
        const Result<> waited = co_await sleep_for(1s);
        http::set_authenticated_user(request, "user of " + token);
        co_return waited&& token == "good";
      })));
  EXPECT_EQ(answer("Authorization: Bearer good\r\n"), "200 user:user of good");
  EXPECT_EQ(answer("Authorization: Bearer bad\r\n").substr(0, 3), "401");
}

TEST_F(HttpAuthentication, a_route_cannot_name_the_user) {
  http::Router router;
  router.get("/{user}", [](Request& request, Response& response) {
    response.send("user:" + std::string(http::authenticated_user(request)));
  });
  serve(std::move(router).handler());
  const std::string text = ask("GET /ann HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(text.ends_with("\r\n\r\nuser:")) << text;
}

TEST_F(HttpAuthentication, options_are_checked) {
  const auto verifier = http::fixed_credentials({});
  EXPECT_EQ(http::basic_authentication("a\r\nb", verifier).error(),
            http::ErrorCode::bad_field_value);
  EXPECT_EQ(http::bearer_authentication("\xC3\xA4", http::fixed_tokens({})).error(),
            http::ErrorCode::bad_field_value);
  EXPECT_EQ(http::basic_authentication("a", {}).error(), system_error(EINVAL));
  EXPECT_EQ(http::bearer_authentication("a", {}).error(), system_error(EINVAL));
}

}  // namespace
}  // namespace tambour::authentication_test
