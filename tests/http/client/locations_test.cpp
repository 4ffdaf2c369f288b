// URLs of programs and of redirects that RFC 3986 does not allow, but browsers, curl and Go accept.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/http/client.h>

#include "http/client/encode_url.h"
#include "http/client/redirect.h"
#include "http/support/scripted_server.h"
#include "support/on_every_backend.h"

namespace tambour::locations_test {
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
using namespace std::string_literals;

struct Case {
  std::string text;
  std::string expected;
};

TEST(EncodedUrl, has_no_characters_that_are_not_allowed) {
  for (const auto& [text, expected] : {
           Case{"http://a/\xC3\xA9?\xC3\xBC#\xC3\x9F", "http://a/%C3%A9?%C3%BC#%C3%9F"},
           Case{"http://a/b c", "http://a/b%20c"},
           Case{"  http://a/b \t", "http://a/b"},
           Case{"http://a/b\tc?d\te", "http://a/bc?de"},
           Case{"/a|b^c`d{e}f\"g<h>i", "/a%7Cb%5Ec%60d%7Be%7Df%22g%3Ch%3Ei"},
           Case{"/?a[]=b|c&d={e}", "/?a%5B%5D=b%7Cc&d=%7Be%7D"},
           Case{"/[a]", "/%5Ba%5D"},
           Case{"/100%", "/100%25"},
           Case{"/%", "/%25"},
           Case{"/%4", "/%254"},
           Case{"/%zz%41%", "/%25zz%41%25"},
           Case{"/?a=100%&b=%2G", "/?a=100%25&b=%252G"},
           Case{"\\a\\b?c\\d#e\\f", "/a/b?c%5Cd#e%5Cf"},
           Case{"http:\\\\a\\b", "http://a/b"},
           Case{"http://a\\@b/", "http://a/@b/"},
           Case{"http://u@v:p w@a/", "http://u%40v:p%20w@a/"},
           Case{"a b:c", "./a%20b:c"},
           Case{"2024:a|b", "./2024:a%7Cb"},
           Case{"?a b", "?a%20b"},
           Case{"#a b", "#a%20b"},
           Case{"a?b?c d#e#f", "a?b?c%20d#e%23f"},
           Case{"//a b/c d", "//a b/c%20d"},
           Case{"http://\xC3\xA9/", "http://\xC3\xA9/"},
           Case{"/a\r\nb\0c"s, "/a\r\nb\0c"s},
           Case{"", ""},
           Case{"%41", "%41"},
       }) {
    EXPECT_EQ(http::detail::client::encode_url(text), expected) << text;
  }
}

TEST(RequestUrl, is_encoded_unless_that_would_change_its_meaning) {
  const auto url = [](const std::string& text) {
    const auto parsed = http::detail::client::parse_request_url(text);
    return parsed ? parsed->to_string() : parsed.error().message();
  };
  const auto error = [](http::ErrorCode error_code) {
    return make_error_code(error_code).message();
  };
  EXPECT_EQ(url("http://a/b c?d|e"), "http://a/b%20c?d%7Ce");
  EXPECT_EQ(url("http://a/%C3%A9%"), "http://a/%C3%A9%25");
  // What could split a request.
  for (const char* const text : {"http://a/b\r\nX: y", "http://a/?b\n", "http://a\r\n/",
                                 "http://u\r\n@a/", "http://a/\x7F", "http://a/b\rc#"})
    EXPECT_NE(url(text).find("The URL"), std::string::npos) << text;
  EXPECT_EQ(url("http://a/\0"s), error(http::ErrorCode::url_bad_character));
  EXPECT_EQ(url("http://a b/"), error(http::ErrorCode::url_bad_host));
  EXPECT_EQ(url("http://\xC3\xA9/"), error(http::ErrorCode::url_bad_host));
  EXPECT_EQ(url("http:///a b"), error(http::ErrorCode::url_bad_host));
  EXPECT_EQ(url("http://a:b c/"), error(http::ErrorCode::url_bad_port));
  EXPECT_EQ(url("ftp://a/b c"), error(http::ErrorCode::url_bad_scheme));
  EXPECT_EQ(url("a b"), error(http::ErrorCode::url_not_absolute));
  EXPECT_EQ(url("http://a/" + std::string(30'000, ' ') + "b"),
            error(http::ErrorCode::url_too_long));
}

TEST(RedirectTarget, is_encoded_and_then_resolved) {
  const auto target = [](const std::string& location) -> std::string {
    ResponseHead head{.status = Status::found};
    or_throw(head.fields.add("Location", location));
    const auto found = http::detail::client::redirect_of(or_throw(Url::parse("http://h:1/a/b?q")),
                                                         Method::get, head, {});
    if (!found)
      return found.error() == http::ErrorCode::bad_location ? "bad" : found.error().message();
    return *found ? (*found)->url.to_string() : "none";
  };
  EXPECT_EQ(target("c d"), "http://h:1/a/c%20d");
  EXPECT_EQ(target("/c|d?e[0]=f#g h"), "http://h:1/c%7Cd?e%5B0%5D=f#g%20h");
  EXPECT_EQ(target("../\xC3\xA9"), "http://h:1/%C3%A9");
  EXPECT_EQ(target("\\\\other\\x y"), "http://other/x%20y");
  EXPECT_EQ(target("..\\c"), "http://h:1/c");
  EXPECT_EQ(target("?100%"), "http://h:1/a/b?100%25");
  EXPECT_EQ(target("2024-01-01T00:00 x"), "http://h:1/a/2024-01-01T00:00%20x");
  EXPECT_EQ(target("https://other/a b"), "https://other/a%20b");
  EXPECT_EQ(target("c\td"), "http://h:1/a/cd");
  for (const char* const bad :
       {"http://a b/", "http://[::1/", "http://a:99999/", "http://", "http:///a", "mailto:a@b",
        "javascript:alert(1)", "http://\xC3\xA9/", "http://a:b/", "http://:80/", "//", "http:a"})
    EXPECT_EQ(target(bad), "bad") << bad;
  EXPECT_EQ(target("/" + std::string(30'000, '|')), "bad");
}

class HttpLocations : public test::OnEveryBackend {
 protected:
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    run([](Client& by, ClientRequest subject, std::string& into) -> Task<> {
      auto response = co_await by.send(std::move(subject));
      if (!response) {
        into = "error: " + response.error().message();
        co_return;
      }
      into = (co_await response->read_text()).value_or("error in body");
    }(client, std::move(request), text));
    return text;
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpLocations);

TEST_P(HttpLocations, are_followed) {
  std::string location;
  ScriptedServer server(loop(), [&](const Arrived& arrived) -> Answer {
    if (arrived.head.target != "/") return ok(arrived.head.target);
    return "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n";
  });
  Client client(loop());
  for (const auto& [text, target] :
       {Case{"/a b", "/a%20b"}, Case{"/caf\xC3\xA9", "/caf%C3%A9"}, Case{"/?a|b", "/?a%7Cb"},
        Case{"/?a[1]=2", "/?a%5B1%5D=2"}, Case{"/50%", "/50%25"}, Case{"\\x", "/x"},
        Case{server.url("/a b?c d#e f"), "/a%20b?c%20d"}}) {
    location = text;
    EXPECT_EQ(got(client, ClientRequest(server.url())), target) << text;
  }
  EXPECT_EQ(got(client, ClientRequest(server.url("/own url?x y"))), "/own%20url?x%20y");
  location = "http://a b/";
  EXPECT_EQ(got(client, ClientRequest(server.url())),
            "error: " + make_error_code(http::ErrorCode::bad_location).message());
}

/// "\" ends the host, as in browsers: what follows it must not decide who gets the credentials.
TEST_P(HttpLocations, with_backslashes_do_not_reveal_credentials) {
  ScriptedServer other(loop(), [](const Arrived& arrived) {
    const bool has_any =
        arrived.head.fields.contains("Authorization") || arrived.head.fields.contains("Cookie");
    return ok(has_any ? "secret" : "nothing");
  });
  std::string location;
  ScriptedServer server(loop(), [&](const Arrived& /*arrived*/) {
    return "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n";
  });
  Client client(loop());
  for (const std::string& to :
       {"http://" + other.authority() + "\\@" + server.authority() + "/",
        "\\\\" + other.authority() + "\\", "http://" + server.authority() + "@" + other.authority(),
        "http://u v@" + other.authority() + "/"}) {
    location = to;
    ClientRequest request(server.url());
    or_throw(request.fields.add("Authorization", "secret"));
    or_throw(request.fields.add("Cookie", "c=1"));
    EXPECT_EQ(got(client, std::move(request)), "nothing") << to;
  }
}

}  // namespace
}  // namespace tambour::locations_test
