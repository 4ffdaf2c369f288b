// Conditional requests for the contents of handlers.
#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::conditions_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::ResourceVersion;
using http::Response;

class HttpConditions : public test::Serving {
 public:
  void serve_version(ResourceVersion version) {
    server_.reset();
    serve([version = std::move(version)](Request& request, Response& response) {
      response.headers().set("Content-Type", "text/x");
      if (http::evaluate_preconditions(request, response, version)) return;
      response.send("sent");
    });
  }
  std::string full(const std::string& method, const std::string& fields) {
    return ask(method + " / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
  }
  std::string status(const std::string& method, const std::string& fields) {
    return full(method, fields).substr(9, 3);
  }
};

constexpr std::chrono::sys_seconds changed{784'111'777s};  // 06 Nov 1994 08:49:37.
const std::string date_before = "Sun, 06 Nov 1994 08:49:36 GMT\r\n";
const std::string date_same = "Sun, 06 Nov 1994 08:49:37 GMT\r\n";

TEST_F(HttpConditions, are_those_of_a_tag) {
  serve_version({.tag = "v7"});
  EXPECT_EQ(full("GET", ""), test::response_of("200 OK", "sent", "Connection: close\r\n")
                                 .insert(17, "Content-Type: text/x\r\nETag: \"v7\"\r\n"));
  EXPECT_EQ(full("GET", "If-None-Match: \"v7\"\r\n"),
            "HTTP/1.1 304 Not Modified\r\nETag: \"v7\"\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status("HEAD", "If-None-Match: W/\"v7\"\r\n"), "304");
  EXPECT_EQ(status("GET", "If-None-Match: \"v6\", \"v7\"\r\n"), "304");
  EXPECT_EQ(status("GET", "If-None-Match: \"v6\"\r\nIf-None-Match: *\r\n"), "304");
  EXPECT_EQ(status("GET", "If-None-Match: \"v6\"\r\n"), "200");
  EXPECT_EQ(status("PUT", "If-Match: \"v7\"\r\n"), "200");
  EXPECT_EQ(status("PUT", "If-Match: *\r\n"), "200");
  EXPECT_EQ(status("PUT", "If-Match: \"v6\"\r\n"), "412");
  EXPECT_EQ(status("PUT", "If-Match: W/\"v7\"\r\n"), "412");
  EXPECT_EQ(status("PUT", "If-Match: v7\r\n"), "412");
  EXPECT_EQ(status("PUT", "If-None-Match: *\r\n"), "412");
  EXPECT_EQ(status("PUT", "If-None-Match: \"v7\"\r\n"), "412");
  // The dates of a resource without one do not count.
  EXPECT_EQ(status("GET", "If-Modified-Since: " + date_same), "200");
  EXPECT_EQ(status("PUT", "If-Unmodified-Since: " + date_before), "200");
  const std::string put = full("PUT", "If-Match: \"v6\"\r\n");
  EXPECT_EQ(put.find("ETag"), std::string::npos) << put;
}

TEST_F(HttpConditions, of_a_resource_that_does_not_exist_allow_its_creation) {
  serve_version({.tag = "v7", .exists = false});
  EXPECT_EQ(status("PUT", "If-None-Match: *\r\n"), "200");
  EXPECT_EQ(status("PUT", "If-None-Match: \"v7\"\r\n"), "200");
  EXPECT_EQ(status("PUT", "If-Match: *\r\n"), "412");
  EXPECT_EQ(status("PUT", "If-Match: \"v7\"\r\n"), "412");
}

TEST_F(HttpConditions, weak_tags_match_only_for_reading) {
  serve_version({.tag = "v7", .is_weak = true});
  const std::string answer = full("GET", "");
  EXPECT_NE(answer.find("\r\nETag: W/\"v7\"\r\n"), std::string::npos) << answer;
  EXPECT_EQ(status("GET", "If-None-Match: W/\"v7\"\r\n"), "304");
  EXPECT_EQ(status("PUT", "If-Match: \"v7\"\r\n"), "412");
}

TEST_F(HttpConditions, are_those_of_a_date) {
  serve_version({.modified = changed});
  const std::string answer = full("GET", "");
  EXPECT_NE(answer.find("\r\nLast-Modified: " + date_same), std::string::npos) << answer;
  EXPECT_EQ(status("GET", "If-Modified-Since: " + date_same), "304");
  EXPECT_EQ(status("GET", "If-Modified-Since: " + date_before), "200");
  EXPECT_EQ(status("POST", "If-Modified-Since: " + date_same), "200");
  EXPECT_EQ(status("PUT", "If-Unmodified-Since: " + date_same), "200");
  EXPECT_EQ(status("PUT", "If-Unmodified-Since: " + date_before), "412");
  EXPECT_EQ(status("PUT", "If-Unmodified-Since: yesterday\r\n"), "200");
  // Tags precede dates.
  EXPECT_EQ(status("GET", "If-None-Match: \"v1\"\r\nIf-Modified-Since: " + date_same), "200");
  EXPECT_EQ(status("PUT", "If-Match: *\r\nIf-Unmodified-Since: " + date_before), "200");
}

TEST_F(HttpConditions, encode_any_text_in_a_tag) {
  serve_version({.tag = "a \"b\"%\r\n\xFF"});
  const std::string answer = full("GET", "");
  const std::string tag = "\"a%20%22b%22%25%0d%0a%ff\"\r\n";
  EXPECT_NE(answer.find("\r\nETag: " + tag), std::string::npos) << answer;
  EXPECT_EQ(status("GET", "If-None-Match: " + tag), "304");
}

TEST_F(HttpConditions, are_evaluated_for_bodies_without_a_tag) {
  http::Router router;
  router.use(http::add_entity_tags(100));
  router.get("/", [](Request&, Response& response) {
    response.headers().set("Content-Type", "text/x");
    response.send("hello");
  });
  router.get("/own", [](Request&, Response& response) {
    response.headers().set("ETag", "\"own\"");
    response.send("hello");
  });
  router.get("/large", [](Request&, Response& response) { response.send(std::string(101, 'x')); });
  router.get("/streamed", [](Request&, Response& response) -> Task<> {
    const auto written = co_await response.write("hello");
    EXPECT_TRUE(written);
  });
  router.post("/", [](Request&, Response& response) { response.send("hello"); });
  serve(std::move(router).handler());
  const auto get = [this](const std::string& target, const std::string& fields = "") {
    return ask("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
  };
  // printf hello | sha1sum
  const std::string tag = "ETag: \"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\"\r\n";
  EXPECT_NE(get("/").find(tag), std::string::npos);
  EXPECT_EQ(get("/", "If-None-Match: " + tag.substr(6)),
            "HTTP/1.1 304 Not Modified\r\n" + tag + "Connection: close\r\n\r\n");
  EXPECT_EQ(get("/", "If-None-Match: \"other\"\r\n").substr(9, 3), "200");
  EXPECT_NE(get("/own").find("ETag: \"own\"\r\n"), std::string::npos);
  EXPECT_EQ(get("/large").find("ETag"), std::string::npos);
  EXPECT_EQ(get("/streamed").find("ETag"), std::string::npos);
  EXPECT_EQ(full("POST", "Content-Length: 0\r\n").find("ETag"), std::string::npos);
}

}  // namespace
}  // namespace tambour::conditions_test
