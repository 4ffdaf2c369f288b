// Routes: paths, methods, virtual hosts, middleware.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "http/support/serving.h"

namespace tambour::router_test {
namespace {

using http::Handler;
using http::Method;
using http::Request;
using http::Response;
using http::Router;
using http::Status;

/// Answers with `name` and the values of these parameters.
Handler named(std::string name, std::vector<std::string> parameters = {}) {
  return [name = std::move(name), parameters = std::move(parameters)](Request& request,
                                                                      Response& response) {
    std::string text = name;
    for (const std::string& parameter : parameters)
      text.append(" ").append(parameter).append("=").append(request.parameter(parameter));
    response.send(text);
  };
}

class HttpRouter : public test::Serving {
 public:
  void serve_routes(Router router) { serve(std::move(router).handler()); }
  test::Reply reply(std::string method, std::string target, std::string host = "a") {
    return run([](HttpRouter& http_router, std::string name, std::string to,
                  std::string authority) -> Task<test::Reply> {
      TcpStream stream = co_await http_router.open();
      static_cast<void>(
          co_await stream.write(name + " " + to + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"));
      Buffer in;
      auto got = co_await test::read_reply(stream, in, Method::parse(name).value());
      co_return or_throw(std::move(got));
    }(*this, std::move(method), std::move(target), std::move(host)));
  }
  std::string get(const std::string& target, const std::string& host = "a") {
    const test::Reply got = reply("GET", target, host);
    return got.status == Status::ok ? got.body : std::to_string(http::code_of(got.status));
  }
};

TEST_F(HttpRouter, chooses_by_path) {
  Router router;
  router.get("/", named("root"))
      .get("/a", named("a"))
      .get("/a/", named("a/"))
      .get("/users/{id}", named("user", {"id"}))
      .get("/users/me", named("me"))
      .get("/users/{id}/posts/{post}", named("post", {"id", "post"}))
      .get("/users/me/{other...}", named("mine", {"other"}))
      .get("/files/{path...}", named("file", {"path"}));
  serve_routes(std::move(router));
  EXPECT_EQ(get("/"), "root");
  EXPECT_EQ(get("/?a=b"), "root");
  EXPECT_EQ(get("/a"), "a");
  EXPECT_EQ(get("/a/"), "a/");
  EXPECT_EQ(get("/A"), "404");
  EXPECT_EQ(get("//"), "404");
  EXPECT_EQ(get("/users/7"), "user id=7");
  EXPECT_EQ(get("/users/me"), "me");
  EXPECT_EQ(get("/users/"), "404");
  EXPECT_EQ(get("/users/7/posts/x"), "post id=7 post=x");
  EXPECT_EQ(get("/users/me/posts/x"), "mine other=posts/x");
  EXPECT_EQ(get("/users/7/posts"), "404");
  EXPECT_EQ(get("/files/"), "file path=");
  EXPECT_EQ(get("/files/a//b/"), "file path=a//b/");
  EXPECT_EQ(get("/files"), "404");
}

TEST_F(HttpRouter, decodes_segments_after_dividing_the_path) {
  Router router;
  router.get("/caf%C3%A9/{x}", named("wrong"))
      .get("/caf\xC3\xA9/{x}", named("cafe", {"x"}))
      .get("/{a}/{b}", named("two", {"a", "b"}));
  serve_routes(std::move(router));
  EXPECT_EQ(get("/caf%c3%a9/a%2Fb"), "cafe x=a/b");
  EXPECT_EQ(get("/%61/%2e%2E"), "two a=a b=..");
  EXPECT_EQ(get("/a%2Fb"), "404");
}

/// Patterns without parameters are found by the whole path.
TEST_F(HttpRouter, finds_text_patterns_of_any_length) {
  std::vector<std::string> patterns = {"/100%", "/a%62", "/%61b", "/x y"};
  std::string prefix = "/";
  for (int i = 0; i < 100; ++i) {
    patterns.push_back(prefix += static_cast<char>('a' + i % 26));
    patterns.push_back(prefix + "/end");
  }
  Router router;
  for (const std::string& pattern : patterns) router.get(pattern, named(pattern));
  router.get("/{other}", named("other", {"other"}));
  serve_routes(std::move(router));
  for (std::size_t i = 4; i < patterns.size(); ++i) {
    EXPECT_EQ(get(patterns[i]), patterns[i]);
    EXPECT_EQ(get(patterns[i] + "?a=/b"), patterns[i]);
  }
  EXPECT_EQ(get("/100%25"), "/100%");
  EXPECT_EQ(get("/%61"), "/a");  // Decoded.
  EXPECT_EQ(get("/a%2562"), "/a%62");
  EXPECT_EQ(get("/%2561b"), "/%61b");
  EXPECT_EQ(get("/x%20y"), "/x y");
  EXPECT_EQ(get("/ab/en"), "404");
  EXPECT_EQ(get("/A"), "other other=A");
}

TEST_F(HttpRouter, goes_back_if_a_more_precise_pattern_has_no_end) {
  Router router;
  router.get("/a/b/c", named("abc"))
      .get("/{x}/b/d", named("xbd", {"x"}))
      .get("/{all...}", named("all", {"all"}));
  serve_routes(std::move(router));
  EXPECT_EQ(get("/a/b/c"), "abc");
  EXPECT_EQ(get("/a/b/d"), "xbd x=a");
  EXPECT_EQ(get("/a/b/e"), "all all=a/b/e");
}

TEST_F(HttpRouter, answers_methods_without_a_handler) {
  Router router;
  router.get("/a", named("got")).post("/a", named("posted")).delete_("/a", named("removed"));
  router.add(Method::parse("PURGE").value(), "/a", named("purged"));
  router.any("/any", named("any")).put("/any", named("put"));
  router.add(Method::head, "/own",
             [](Request&, Response& response) { response.headers().set("X", "head"); });
  router.get("/own", named("own"));
  serve_routes(std::move(router));
  EXPECT_EQ(reply("POST", "/a").body, "posted");
  EXPECT_EQ(reply("DELETE", "/a").body, "removed");
  EXPECT_EQ(reply("PURGE", "/a").body, "purged");
  const test::Reply head = reply("HEAD", "/a");
  EXPECT_EQ(head.status, Status::ok);
  EXPECT_EQ(head.fields.get("Content-Length"), "3");
  EXPECT_EQ(reply("HEAD", "/own").fields.get("X"), "head");
  const test::Reply wrong = reply("PUT", "/a");
  EXPECT_EQ(wrong.status, Status::method_not_allowed);
  EXPECT_EQ(wrong.fields.get("Allow"), "GET, POST, DELETE, PURGE, HEAD, OPTIONS");
  const test::Reply options = reply("OPTIONS", "/a");
  EXPECT_EQ(options.status, Status::no_content);
  EXPECT_EQ(options.fields.get("Allow"), wrong.fields.get("Allow"));
  EXPECT_EQ(reply("OPTIONS", "*").status, Status::no_content);
  EXPECT_EQ(reply("OPTIONS", "/missing").status, Status::not_found);
  EXPECT_EQ(reply("PUT", "/any").body, "put");
  EXPECT_EQ(reply("PATCH", "/any").body, "any");
  EXPECT_EQ(reply("CONNECT", "a:1").status, Status::not_implemented);
}

TEST_F(HttpRouter, chooses_by_host) {
  Router router;
  router.get("/", named("default"));
  router.host("example.org").get("/", named("example"));
  router.host("*.example.org").get("/", named("below"));
  router.host("a.example.org").get("/", named("a"));
  router.host("EXAMPLE.org").get("/more", named("more"));
  serve_routes(std::move(router));
  EXPECT_EQ(get("/", "other"), "default");
  EXPECT_EQ(get("/", "example.org"), "example");
  EXPECT_EQ(get("/", "Example.ORG:8080"), "example");
  EXPECT_EQ(get("/", "example.org."), "example");
  EXPECT_EQ(get("/more", "example.org"), "more");
  EXPECT_EQ(get("/more", "other"), "404");
  EXPECT_EQ(get("/", "a.example.org"), "a");
  EXPECT_EQ(get("/", "b.example.org"), "below");
  EXPECT_EQ(get("/", "c.b.example.org"), "below");
  EXPECT_EQ(get("/", ".example.org"), "default");
  EXPECT_EQ(get("/", ""), "default");
  // The authority of an absolute target counts.
  EXPECT_EQ(get("http://example.org/", "other"), "example");
}

Task<> tag(Request& request, Response& response, const Handler& next) {
  response.headers().add("Tag", "outer");
  request.set_parameter("user", "ann");
  co_await next.run(request, response);
}

TEST_F(HttpRouter, middleware_surrounds_routes_and_answers) {
  Router api;
  api.use([](Request& request, Response& response, const Handler& next) -> Task<> {
    response.headers().add("Tag", "inner");
    if (!request.headers().contains("Host")) co_return;
    if (request.query() == "deny") {
      response.send(Status::forbidden);
      co_return;
    }
    co_await next.run(request, response);
  });
  api.get("/users/{id}", named("user", {"id", "user"})).any("/any", named("any"));
  Router router;
  router.use(tag).mount("/api", std::move(api)).get("/", named("root", {"user"}));
  router.host("b").get("/", named("host", {"user"}));
  serve_routes(std::move(router));
  const auto tags = [](const test::Reply& got) { return got.fields.joined("Tag"); };
  EXPECT_EQ(get("/"), "root user=ann");
  EXPECT_EQ(tags(reply("GET", "/")), "outer");
  EXPECT_EQ(get("/api/users/7"), "user id=7 user=ann");
  EXPECT_EQ(tags(reply("GET", "/api/users/7")), "outer, inner");
  EXPECT_EQ(get("/api/any"), "any");
  EXPECT_EQ(get("/api/users/7?deny"), "403");
  EXPECT_EQ(tags(reply("GET", "/missing")), "outer");
  EXPECT_EQ(tags(reply("PUT", "/")), "outer");
  EXPECT_EQ(get("/", "b"), "host user=ann");
}

TEST_F(HttpRouter, parameters_do_not_outlive_their_request) {
  Router router;
  router.get("/{a}", named("one", {"a", "b"})).get("/{a}/{b}", named("two", {"a", "b"}));
  serve_routes(std::move(router));
  EXPECT_EQ(ask("GET /1/2 HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            test::response_of("200 OK", "two a=1 b=2") +
                test::response_of("200 OK", "one a=3 b=", "Connection: close\r\n"));
}

TEST_F(HttpRouter, a_handler_replaces_the_answer_404) {
  Router router;
  router.not_found([](Request& request, Response& response) {
    response.send(Status::not_found, "no " + std::string(request.path()));
  });
  serve_routes(std::move(router));
  EXPECT_EQ(reply("GET", "/x").body, "no /x");
  EXPECT_EQ(reply("GET", "/x").status, Status::not_found);
}

using HttpRouterDeathTest = HttpRouter;

TEST_F(HttpRouterDeathTest, malformed_patterns_abort) {
  Router router;
  router.get("/a/{id}", named("a"));
  EXPECT_DEATH(router.get("a", named("")), "the pattern \"a\" does not begin with \"/\"");
  EXPECT_DEATH(router.get("/{", named("")), "without a closing brace");
  EXPECT_DEATH(router.get("/{}", named("")), "without a valid name");
  EXPECT_DEATH(router.get("/a{b}", named("")), "has a brace inside a segment");
  EXPECT_DEATH(router.get("/{a...}/b", named("")), "has a segment after");
  EXPECT_DEATH(router.get("/{a}/{a}", named("")), "two parameters with the same name");
  EXPECT_DEATH(router.get("/a/{name}", named("")), "only in the names of its parameters");
  EXPECT_DEATH(router.get("/a/{id}", named("")), "GET \"/a/\\{id\\}\" was added twice");
}

/// Adds routes in a child and expects what it writes to standard error.
template <class AddRoutes>
void expect_output(AddRoutes add_routes, const char* pattern) {
  const auto run = [&] {
    Router router;
    add_routes(router);
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), pattern);
}

TEST_F(HttpRouterDeathTest, a_parameter_of_another_library_is_reported_once) {
  expect_output([](Router& router) { router.get("/users/:id", named("")).get("/x/:y", named("")); },
                "^tambour: http::Router: in the pattern \"/users/:id\", \":id\" is text and no "
                "parameter; write \"\\{id\\}\" for a parameter\n$");
  expect_output([](Router& router) { router.get("/files/*", named("")); },
                "write \"\\{path...\\}\" for a parameter\n$");
  expect_output([](Router& router) { router.get("/files/*rest", named("")); },
                "write \"\\{rest...\\}\" for a parameter\n$");
  expect_output([](Router& router) { router.get("/a:b/{id}/**x/:", named("")); },
                "^tambour: .*\"\\*\\*x\" is text");
  expect_output([](Router& router) { router.get("/a:b/{id}/:/x*", named("")); }, "^$");
}

}  // namespace
}  // namespace tambour::router_test
