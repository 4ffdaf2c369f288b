// HSTS: the field, the store and its limits, its text, and clients that obey it.
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "tls/support/certificates.h"

namespace tambour::hsts_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::Fields;
using http::HstsStore;
using http::Url;
using namespace std::chrono_literals;

constexpr WallTime now = std::chrono::sys_days(std::chrono::year(2027) / 1 / 2);

Url url_of(std::string_view text) { return Url::parse(text).value(); }

void store(HstsStore& hsts, std::string_view url, std::string_view value, WallTime at = now) {
  Fields fields;
  or_throw(fields.add("Strict-Transport-Security", value));
  hsts.store(url_of(url), fields, at);
}

std::string secured(const HstsStore& hsts, std::string_view url, WallTime at = now) {
  return hsts.secure(url_of(url), at).value().to_string();
}

bool applies_after(std::string_view value) {
  HstsStore hsts;
  store(hsts, "https://a.test/", value);
  return hsts.applies_to("a.test", now);
}

TEST(HstsStore, hosts_and_those_below) {
  HstsStore hsts;
  store(hsts, "https://A.test/", "max-age=60");
  store(hsts, "https://b.test.:8443/", "max-age=60; includeSubDomains");
  EXPECT_TRUE(hsts.applies_to("a.TEST", now));
  EXPECT_TRUE(hsts.applies_to("a.test.", now));
  EXPECT_FALSE(hsts.applies_to("www.a.test", now));
  EXPECT_TRUE(hsts.applies_to("b.test", now));
  EXPECT_TRUE(hsts.applies_to("x.y.b.test", now));
  EXPECT_FALSE(hsts.applies_to("xb.test", now));
  EXPECT_FALSE(hsts.applies_to("test", now));
  EXPECT_TRUE(hsts.applies_to("a.test", now + 59s));
  EXPECT_FALSE(hsts.applies_to("a.test", now + 60s));
}

TEST(HstsStore, updates) {
  HstsStore hsts;
  store(hsts, "https://a.test/", "max-age=60; includeSubDomains");
  store(hsts, "https://a.test/", "max-age=120");
  EXPECT_FALSE(hsts.applies_to("www.a.test", now));
  EXPECT_TRUE(hsts.applies_to("a.test", now + 100s));
  store(hsts, "https://www.a.test/", "max-age=0");
  EXPECT_TRUE(hsts.applies_to("a.test", now));
  store(hsts, "https://a.test/", "max-age=0; includeSubDomains");
  EXPECT_FALSE(hsts.applies_to("a.test", now));
  EXPECT_EQ(hsts.size(), 0U);
}

TEST(HstsStore, values) {
  for (const char* const value :
       {"max-age=1", "MAX-AGE=1", " max-age = \"31536000\" ; includesubdomains",
        "max-age=1; preload", "max-age=1;", ";;max-age=1", "includeSubDomains; max-age=1",
        "max-age=1; x=\"a;b\\\"\"", "max-age=99999999999999999999999"})
    EXPECT_TRUE(applies_after(value)) << value;
  for (const char* const value :
       {"", "includeSubDomains", "max-age", "max-age=", "max-age=-1", "max-age=1s", "max-age=\"1",
        "max-age=1; max-age=2", "max-age=1; includeSubDomains=1", "max-age=1, preload",
        "max-age=1; includeSubDomains; includesubdomains", "max-age=1 includeSubDomains",
        "max-age=\"\"", "=1; max-age=1"})
    EXPECT_FALSE(applies_after(value)) << value;
}

TEST(HstsStore, values_with_many_directives_are_ignored) {
  std::string many = "max-age=1";
  for (int i = 1; i < 64; ++i) many += ";x" + std::to_string(i);
  EXPECT_TRUE(applies_after(many));
  EXPECT_FALSE(applies_after(many + ";y"));
}

TEST(HstsStore, what_is_ignored) {
  HstsStore hsts;
  store(hsts, "http://a.test/", "max-age=60");
  store(hsts, "https://192.0.2.1/", "max-age=60");
  store(hsts, "https://[2001:db8::1]/", "max-age=60");
  EXPECT_EQ(hsts.size(), 0U);
  EXPECT_FALSE(hsts.add("192.0.2.1", now + 1h, false, now));
  EXPECT_FALSE(hsts.add("", now + 1h, false, now));
  EXPECT_FALSE(hsts.add("a b", now + 1h, false, now));
  Fields fields;
  or_throw(fields.add("Strict-Transport-Security", "max-age=0"));
  or_throw(fields.add("Strict-Transport-Security", "max-age=60"));
  hsts.store(url_of("https://a.test/"), fields, now);
  EXPECT_EQ(hsts.size(), 0U) << "only the first field counts";
}

TEST(HstsStore, urls) {
  HstsStore hsts;
  store(hsts, "https://a.test/", "max-age=60");
  EXPECT_EQ(secured(hsts, "http://a.test"), "https://a.test");
  EXPECT_EQ(secured(hsts, "HTTP://u:p@a.test:80/x?y#z"), "https://u:p@a.test/x?y#z");
  EXPECT_EQ(secured(hsts, "http://a.test:/"), "https://a.test:/");
  EXPECT_EQ(secured(hsts, "http://a.test:8080/"), "https://a.test:8080/");
  EXPECT_EQ(secured(hsts, "https://a.test:80/"), "https://a.test:80/");
  EXPECT_EQ(secured(hsts, "http://b.test:80/"), "http://b.test:80/");
  EXPECT_EQ(secured(hsts, "http://a.test/", now + 60s), "http://a.test/");
}

TEST(HstsStore, limits) {
  HstsStore few({.hosts_max = 3, .hosts_per_site_max = 2});
  EXPECT_TRUE(few.add("a.test", now + 3h, false, now));
  EXPECT_TRUE(few.add("b.test", now + 1h, false, now));
  EXPECT_TRUE(few.add("c.test", now + 2h, false, now));
  EXPECT_TRUE(few.add("d.test", now + 4h, false, now));
  EXPECT_EQ(few.size(), 3U);
  EXPECT_FALSE(few.applies_to("b.test", now)) << "its time ends first";
  EXPECT_TRUE(few.add("x.a.test", now + 5h, false, now));
  EXPECT_FALSE(few.applies_to("c.test", now));
  EXPECT_TRUE(few.add("y.a.test", now + 9h, false, now));
  EXPECT_FALSE(few.applies_to("a.test", now)) << "one site takes the places of its own hosts only";
  EXPECT_TRUE(few.applies_to("d.test", now));
  EXPECT_EQ(few.size(), 3U);
  HstsStore none({.hosts_max = 0});
  EXPECT_TRUE(none.add("a.test", now + 1h, false, now));
  EXPECT_EQ(none.size(), 0U);
  HstsStore hsts;
  store(hsts, "https://a.test/", "max-age=99999999999");
  EXPECT_FALSE(hsts.applies_to("a.test", now + std::chrono::days(3651)));
}

TEST(HstsStore, text) {
  HstsStore hsts;
  store(hsts, "https://b.test/", "max-age=90061; includeSubDomains");
  store(hsts, "https://a.test/", "max-age=60");
  store(hsts, "https://old.test/", "max-age=1", now - 1h);
  const std::string text = hsts.to_text(now);
  EXPECT_EQ(text, "a.test \"20270102 00:01:00\"\n.b.test \"20270103 01:01:01\"\n");
  HstsStore again;
  EXPECT_EQ(again.load(text, now), 2U);
  EXPECT_EQ(again.to_text(now), text);
  EXPECT_TRUE(again.applies_to("x.b.test", now));
  again.clear();
  EXPECT_EQ(again.load("# Your HSTS cache. https://curl.se/docs/hsts.html\n\n"
                       ".c.test \"unlimited\"\r\nd.test  \"20270101 00:00:00\"",
                       now),
            1U)
      << "the time of the last one has ended";
  EXPECT_TRUE(again.applies_to("x.c.test", now));
  for (const char* const wrong :
       {"a.test", "a.test 20270103 00:00:00", "a.test \"20271303 00:00:00\"",
        "a.test \"20270103 24:00:00\"", "a.test \"2027010300:00:00\"", "a b \"20280103 00:00:00\"",
        "192.0.2.1 \"20280103 00:00:00\"", " \"20280103 00:00:00\"", "a.test \"\"", "a.test \""})
    EXPECT_FALSE(again.load(wrong, now)) << wrong;
}

class HstsClient : public test::OnEveryBackend {
 protected:
  http::Server serve() {
    http::ServerOptions options;
    options.listen.tls = contexts.server;
    return or_throw(http::Server::listen(
        loop(), Endpoint::loopback_v4(0),
        [this](http::Request& request, http::Response& response) {
          if (request.path() == "/moved") {
            or_throw(response.headers().set(
                "Location", "http://" + std::string(request.head().authority) + "/there"));
            response.send(http::Status::found);
          } else {
            if (!policy.empty())
              or_throw(response.headers().set("Strict-Transport-Security", policy));
            response.send("secure " + std::string(request.path()));
          }
        },
        options));
  }
  std::string got(Client& client, std::string url) {
    std::string text;
    run([](Client& http_client, std::string to, std::string& into) -> Task<> {
      auto response = co_await http_client.get(std::move(to));
      if (!response) {
        into = "error: " + response.error().message();
        co_return;
      }
      into = std::to_string(http::code_of(response->status())) + " " +
             (co_await response->read_text()).value_or("error in body");
    }(client, std::move(url), text));
    return text;
  }

  test::Contexts contexts;
  std::string policy;
};

TAMBOUR_ON_EVERY_BACKEND(HstsClient);

TEST_P(HstsClient, requests_are_sent_with_tls) {
  http::Server server = serve();
  const std::string host = "localhost:" + std::to_string(server.endpoint().port());
  ClientOptions options;
  options.connect.tls = contexts.client;
  options.hsts = std::make_shared<HstsStore>();
  options.retry.attempts_max = 1;
  Client client(loop(), options);
  EXPECT_TRUE(got(client, "http://" + host + "/").starts_with("error: ")) << "without TLS";
  EXPECT_EQ(got(client, "https://" + host + "/moved"), "302 ") << "not followed to http";
  policy = "max-age=3600";
  EXPECT_EQ(got(client, "https://" + host + "/"), "200 secure /");
  EXPECT_EQ(options.hsts->size(), 1U);
  EXPECT_EQ(got(client, "http://" + host + "/a"), "200 secure /a");
  EXPECT_EQ(got(client, "https://" + host + "/moved"), "200 secure /there");
  policy = "max-age=0";
  EXPECT_EQ(got(client, "http://" + host + "/a"), "200 secure /a");
  EXPECT_EQ(options.hsts->size(), 0U);
  EXPECT_TRUE(got(client, "http://" + host + "/").starts_with("error: "));
}

}  // namespace
}  // namespace tambour::hsts_test
