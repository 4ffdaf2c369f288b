// Redirects that the HTTP client follows, and those that it does not.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/http/client.h>

#include "http/client/redirect.h"
#include "http/support/scripted_server.h"
#include "support/on_every_backend.h"

namespace tambour::redirects_test {
namespace {

using http::Client;
using http::ClientRequest;
using http::Method;
using http::ResponseHead;
using http::Status;
using http::Url;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;

std::string redirect(int status, const std::string& location) {
  return "HTTP/1.1 " + std::to_string(status) + " Moved\r\nLocation: " + location +
         "\r\nContent-Length: 4\r\n\r\ngone";
}

/// What a server sees of a request.
std::string summary(const Arrived& arrived) {
  std::string text(arrived.head.method.name());
  text += " " + arrived.head.target + " " + arrived.body;
  for (const char* const name : {"Authorization", "Cookie", "Content-Type", "X-Other"}) {
    if (const auto value = arrived.head.fields.get(name)) text += " " + std::string(*value);
  }
  return text;
}

class HttpRedirects : public test::OnEveryBackend {
 protected:
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    run([](Client& http_client, ClientRequest subject, std::string& into) -> Task<> {
      auto response = co_await http_client.send(std::move(subject));
      if (!response) {
        into = "error: " + response.error().message();
        co_return;
      }
      auto body = co_await response->read_text();
      into = std::to_string(http::code_of(response->status())) + " " + response->url().to_string() +
             " " + body.value_or("error in body");
    }(client, std::move(request), text));
    return text;
  }

  static ClientRequest post(std::string url) {
    ClientRequest request(Method::post, std::move(url), Buffer("body"));
    ClientRequest requestClientRequest(Method::post, std::move(url), Buffer("body"));
    or_throw(request.fields.add("Authorization", "secret"));
    or_throw(request.fields.add("Cookie", "c=1"));
    or_throw(request.fields.add("Content-Type", "text/plain"));
    or_throw(request.fields.add("X-Other", "other"));
    return request;
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpRedirects);

TEST_P(HttpRedirects, the_status_decides_about_method_and_body) {
  ScriptedServer server(loop(), [](const Arrived& arrived) -> Answer {
    if (arrived.head.target == "/end") return ok(summary(arrived));
    return redirect(std::stoi(arrived.head.target.substr(1)), "end");
  });
  Client client(loop());
  const std::string end = "200 " + server.url("/end") + " ";
  for (const char* const status : {"/301", "/302", "/303"})
    EXPECT_EQ(got(client, post(server.url(status))), end + "GET /end  secret c=1 other");
  for (const char* const status : {"/307", "/308"}) {
    EXPECT_EQ(got(client, post(server.url(status))),
              end + "POST /end body secret c=1 text/plain other");
  }
  EXPECT_EQ(got(client, ClientRequest(Method::put, server.url("/302"), Buffer("b"))),
            end + "PUT /end b");
  EXPECT_EQ(got(client, ClientRequest(Method::put, server.url("/303"), Buffer("b"))),
            end + "GET /end ");
  EXPECT_EQ(got(client, ClientRequest(Method::head, server.url("/303"))), end);
  EXPECT_EQ(server.connections(), 1);
}

TEST_P(HttpRedirects, another_origin_gets_no_credentials) {
  ScriptedServer other(loop(), [](const Arrived& arrived) { return ok(summary(arrived)); });
  ScriptedServer server(loop(), [&](const Arrived&) { return redirect(307, other.url("/there")); });
  Client client(loop());
  EXPECT_EQ(got(client, post(server.url())),
            "200 " + other.url("/there") + " POST /there body text/plain other");
}

TEST_P(HttpRedirects, are_followed_up_to_a_limit) {
  ScriptedServer server(loop(), [](const Arrived& arrived) -> Answer {
    const int left = std::stoi(arrived.head.target.substr(1));
    if (left == 0) return ok("end");
    return redirect(302, "/" + std::to_string(left - 1));
  });
  Client client(loop(), {.redirects_max = 3});
  EXPECT_EQ(got(client, ClientRequest(server.url("/3"))), "200 " + server.url("/0") + " end");
  EXPECT_EQ(got(client, ClientRequest(server.url("/4"))),
            "error: " + make_error_code(http::ErrorCode::too_many_redirects).message());
  Client none(loop(), {.redirects_max = 0});
  EXPECT_EQ(got(none, ClientRequest(server.url("/1"))), "302 " + server.url("/1") + " gone");
}

TEST_P(HttpRedirects, a_body_from_a_source_is_not_sent_again) {
  class One final : public http::BodySource {
   public:
    Task<Result<>> read(Buffer& into) override {
      if (!done_) into.append("once");
      done_ = true;
      co_return {};
    }

   private:
    bool done_ = false;
  };
  ScriptedServer server(loop(), [](const Arrived& arrived) -> Answer {
    if (arrived.head.target == "/end") return ok(summary(arrived));
    return redirect(std::stoi(arrived.head.target.substr(1)), "/end");
  });
  Client client(loop());
  const auto with_source = [&](const char* target) {
    ClientRequest request(Method::post, server.url(target));
    request.source = std::make_unique<One>();
    return got(client, std::move(request));
  };
  EXPECT_EQ(with_source("/307"), "307 " + server.url("/307") + " gone");
  EXPECT_EQ(with_source("/303"), "200 " + server.url("/end") + " GET /end ");
}

TEST(HttpRedirect, is_not_followed_without_a_valid_target) {
  const auto target = [](const char* from, Status status, const char* location) -> std::string {
    ResponseHead head{.status = status};
    if (location != nullptr) or_throw(head.fields.add("Location", location));
    const auto found =
        http::detail::client::redirect_of(or_throw(Url::parse(from)), Method::get, head, {});
    if (!found)
      return found.error() == http::ErrorCode::bad_location ? "bad" : found.error().message();
    return *found ? (*found)->url.to_string() : "none";
  };
  const char* const page = "https://example.org/a/b?q";
  EXPECT_EQ(target(page, Status::found, "c"), "https://example.org/a/c");
  EXPECT_EQ(target(page, Status::found, "?r"), "https://example.org/a/b?r");
  EXPECT_EQ(target(page, Status::found, "//example.com/x"), "https://example.com/x");
  EXPECT_EQ(target(page, Status::found, nullptr), "none");
  EXPECT_EQ(target(page, Status::found, ""), "none");
  EXPECT_EQ(target(page, Status::found, "http://example.org/"), "none");  // Without encryption.
  EXPECT_EQ(target(page, Status::found, "file:///etc/passwd"), "bad");
  EXPECT_EQ(target(page, Status::found, "https://a b/"), "bad");
  EXPECT_EQ(target(page, Status::not_modified, "c"), "none");
  EXPECT_EQ(target(page, Status::multiple_choices, "c"), "none");
  EXPECT_EQ(target("http://example.org/", Status::found, "https://example.org/"),
            "https://example.org/");
}

TEST(HttpOrigin, is_the_scheme_the_host_and_the_port) {
  const auto origin = [](const char* url) {
    return http::detail::client::origin_of(or_throw(http::detail::client::parse_request_url(url)));
  };
  EXPECT_EQ(origin("http://Example.org/a"), origin("HTTP://example.ORG:80/b?c"));
  EXPECT_NE(origin("http://example.org/"), origin("https://example.org/"));
  EXPECT_NE(origin("http://example.org/"), origin("http://example.org:8080/"));
  const auto authority = [](const char* url) {
    return http::detail::client::authority_of(
        or_throw(http::detail::client::parse_request_url(url)));
  };
  EXPECT_EQ(authority("http://user:pw@example.org:80/"), "example.org");
  EXPECT_EQ(authority("https://[::1]:8443/"), "[::1]:8443");
}

}  // namespace
}  // namespace tambour::redirects_test
