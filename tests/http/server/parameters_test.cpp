// Parameters of routes and queries: decoded, converted, and refused with their name.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::parameters_test {
namespace {

using http::Request;
using http::Response;

class HttpParameters : public test::Serving {
 public:
  /// The body of the response, after its status.
  std::string answer(const std::string& target) {
    const std::string text =
        ask("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return text.substr(9, 4) + text.substr(text.find("\r\n\r\n") + 4);
  }
  void serve_route(const std::string& pattern, http::Handler handler) {
    http::Router router;
    router.get(pattern, std::move(handler));
    server_.reset();
    serve(std::move(router).handler());
  }
  template <class T>
  void serve_number() {
    serve_route("/{n}", [](Request& request, Response& response) {
      const auto number = request.parameter_as<T>("n");
      if (number) response.send(std::to_string(*number));
    });
  }
};

TEST_F(HttpParameters, of_queries_are_decoded) {
  serve_route("/", [](Request& request, Response& response) {
    const auto x = request.query_parameter("x y");
    std::string text = x ? "<" + *x + ">" : "none";
    for (const std::string& tag : request.query_parameters("tag")) text += "," + tag;
    response.send(text);
  });
  EXPECT_EQ(answer("/"), "200 none");
  EXPECT_EQ(answer("/?"), "200 none");
  EXPECT_EQ(answer("/?x=1&y=2&xy=3"), "200 none");
  EXPECT_EQ(answer("/?x+y"), "200 <>");
  EXPECT_EQ(answer("/?x%20y=&x+y=2"), "200 <>");
  EXPECT_EQ(answer("/?a=b&&x+y=1+%2B%26%zz=3&tag=a&tag=&tag=%C3%A4"),
            "200 <1 +&%zz=3>,a,,\xC3\xA4");
}

TEST_F(HttpParameters, of_routes_are_numbers) {
  serve_number<std::int8_t>();
  EXPECT_EQ(answer("/127"), "200 127");
  EXPECT_EQ(answer("/-128"), "200 -128");
  const std::string refused =
      "400 400 Bad Request: the parameter \"n\" must be a number from -128 to 127\n";
  for (const char* other :
       {"128", "-129", "+1", "1.0", "0x1", "%201", "1%20", "a", "-", "1e2", "99999999999999999999"})
    EXPECT_EQ(answer(std::string("/") + other), refused) << other;
  serve_number<std::uint64_t>();
  EXPECT_EQ(answer("/18446744073709551615"), "200 18446744073709551615");
  EXPECT_EQ(answer("/18446744073709551616").substr(0, 4), "400 ");
  EXPECT_EQ(answer("/-1").substr(0, 4), "400 ");
  serve_number<std::int64_t>();
  EXPECT_EQ(answer("/-9223372036854775808"), "200 -9223372036854775808");
}

TEST_F(HttpParameters, of_routes_are_texts_and_uuids) {
  serve_route("/{id}/{rest...}", [](Request& request, Response& response) {
    const auto id = request.parameter_as<Uuid>("id");
    const auto rest = request.parameter_as<std::string>("rest");
    if (id && rest) response.send(id->to_string() + *rest);
  });
  EXPECT_EQ(answer("/F81D4FAE-7dec-11d0-a765-00a0c91e6bf6/x"),
            "200 f81d4fae-7dec-11d0-a765-00a0c91e6bf6x");
  EXPECT_EQ(answer("/f81d4fae-7dec-11d0-a765-00a0c91e6bf6/"),
            "400 400 Bad Request: the parameter \"rest\" must not be empty\n");
  for (const char* other :
       {"f81d4fae7dec-11d0-a765-00a0c91e6bf6", "{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}",
        "g81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae-7dec-11d0-a765-00a0c91e6bf"})
    EXPECT_EQ(answer(std::string("/") + other + "/x"),
              "400 400 Bad Request: the parameter \"id\" must be a UUID\n")
        << other;
}

TEST_F(HttpParameters, of_queries_may_be_missing) {
  serve_route("/", [](Request& request, Response& response) {
    const Result<std::optional<unsigned>> limit = request.query_parameter_as<unsigned>("limit");
    if (!limit) return;
    response.send(*limit ? std::to_string(**limit) : "all");
  });
  EXPECT_EQ(answer("/"), "200 all");
  EXPECT_EQ(answer("/?limit=5"), "200 5");
  EXPECT_EQ(answer("/?limit="),
            "400 400 Bad Request: the query parameter \"limit\" must be a number from 0 to "
            "4294967295\n");
}

TEST_F(HttpParameters, that_are_wrong_leave_the_connection_open) {
  serve_number<int>();
  const std::string twice =
      ask("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
          "GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(twice.starts_with("HTTP/1.1 400 ")) << twice;
  EXPECT_TRUE(twice.ends_with("\r\n\r\n1")) << twice;
}

TEST_F(HttpParameters, that_are_wrong_may_be_answered_by_the_handler) {
  serve_route("/{n}", [](Request& request, Response& response) {
    if (!request.parameter_as<int>("n")) response.send(http::Status::not_found, "mine");
  });
  EXPECT_EQ(answer("/x"), "404 mine");
}

TEST_F(HttpParameters, are_refused_by_the_program_too) {
  serve_route("/", [](Request& request, Response&) -> Task<> {
    const auto first = request.reject(http::ErrorCode::body_too_large, "too long");
    EXPECT_EQ(first.error(), http::ErrorCode::body_too_large);
    static_cast<void>(request.reject(http::ErrorCode::bad_parameter, "second"));
    co_return;
  });
  EXPECT_EQ(answer("/"), "413 413 Content Too Large: too long\n");
}

TEST_F(HttpParameters, name_the_route) {
  http::Router inner;
  inner.get("/{name...}", [](Request& request, Response& response) {
    response.send(std::string(request.route()));
  });
  http::Router router;
  std::vector<std::string> routes;
  router.use([&](Request& request, Response& response, const http::Handler& next) -> Task<> {
    co_await next.run(request, response);
    routes.emplace_back(request.route());
  });
  router.mount("/files", std::move(inner));
  router.post("/files/a/{x}", [](Request&, Response& response) { response.send("x"); });
  serve(std::move(router).handler());
  EXPECT_EQ(answer("/files/a/b/c"), "200 /files/{name...}");
  EXPECT_EQ(answer("/files/a/b").substr(0, 4), "405 ");
  EXPECT_EQ(answer("/other").substr(0, 4), "404 ");
  EXPECT_EQ(routes, (std::vector<std::string>{"/files/{name...}", "/files/a/{x}", ""}));
}

}  // namespace
}  // namespace tambour::parameters_test
