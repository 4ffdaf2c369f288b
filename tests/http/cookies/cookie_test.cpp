// Cookies: what servers write and read, and what a jar stores and sends.
#include <tambour/http/cookie.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http/cookies/cookie_date.h"

namespace tambour::cookie_test {
namespace {

using http::CookieJar;
using http::Fields;
using http::SameSite;
using http::SetCookie;
using http::Url;
using namespace std::chrono_literals;

// The Cookie field.

TEST(HttpCookies, are_read_from_requests) {
  Fields fields;
  EXPECT_FALSE(http::cookie_named(fields, "a"));
  EXPECT_TRUE(fields.add("Cookie", "a=1; b=\"two\";c=;  d = x=y ; nameless; a=2"));
  EXPECT_TRUE(fields.add("Cookie", "e=5"));
  EXPECT_EQ(http::cookie_named(fields, "a"), "1");
  EXPECT_EQ(http::cookie_named(fields, "b"), "\"two\"");
  EXPECT_EQ(http::cookie_named(fields, "c"), "");
  EXPECT_EQ(http::cookie_named(fields, "d"), "x=y");
  EXPECT_EQ(http::cookie_named(fields, "e"), "5");
  EXPECT_FALSE(http::cookie_named(fields, "A")) << "names are case-sensitive";
  EXPECT_FALSE(http::cookie_named(fields, "nameless"));
  EXPECT_FALSE(http::cookie_named(fields, ""));
  EXPECT_EQ(http::parse_cookies(fields).size(), 6U);
}

// The Set-Cookie field.

std::string written(const SetCookie& cookie) {
  const auto text = http::format_set_cookie(cookie);
  return text ? *text : "error";
}

TEST(HttpCookies, are_written) {
  SetCookie cookie("id", "a3fWa");
  EXPECT_EQ(written(cookie), "id=a3fWa; Path=/; Secure; HttpOnly; SameSite=Lax");
  cookie.domain = "example.org";
  cookie.path = "/app";
  cookie.expires = std::chrono::sys_days(2026y / 1 / 2) + 3h;
  cookie.max_age = 60s;
  cookie.same_site = SameSite::none;
  EXPECT_EQ(written(cookie),
            "id=a3fWa; Domain=example.org; Path=/app; Expires=Fri, 02 Jan 2026 03:00:00 GMT; "
            "Max-Age=60; Secure; HttpOnly; SameSite=None");
  Fields fields;
  EXPECT_TRUE(http::add_cookie(fields, SetCookie("a", "1")));
  EXPECT_TRUE(http::add_cookie(fields, SetCookie("b", "2")));
  EXPECT_EQ(fields.count("Set-Cookie"), 2U);
  EXPECT_TRUE(http::remove_cookie(fields, "a"));
  EXPECT_EQ(fields[2].value,
            "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; HttpOnly; SameSite=Lax");
}

TEST(HttpCookies, cannot_inject_anything) {
  for (const char* const bad :
       {"", "a b", "a;b", "a=b", "a\r\nb", "a,b", "\xc3\xa4", "a\tb", "a\""})
    EXPECT_EQ(written(SetCookie(bad, "x")), "error") << bad;
  for (const std::string bad :
       {"a b", "a;b", "a\r\nSet-Cookie: b=c", "a,b", "\xc3\xa4", "a\"", "a\\b", "\x7f"})
    EXPECT_EQ(written(SetCookie("x", bad)), "error") << bad;
  EXPECT_EQ(written(SetCookie("x", std::string("a\0b", 3))), "error");
  for (const char* const bad :
       {"a;b", "a b", "a\r\nb", "example.org; Secure", ".example.org", "a..b"}) {
    SetCookie cookie("x", "y");
    cookie.domain = bad;
    EXPECT_EQ(written(cookie), "error") << bad;
  }
  for (const char* const bad : {"a", "/a;b", "/a\r\nb", "/\x7f", "/\xc3\xa4"}) {
    SetCookie cookie("x", "y");
    cookie.path = bad;
    EXPECT_EQ(written(cookie), "error") << bad;
  }
  EXPECT_NE(written(SetCookie("x", std::string(4095, 'y'))), "error");
  EXPECT_EQ(written(SetCookie("x", std::string(4096, 'y'))), "error");
}

TEST(HttpCookies, prefixes_and_same_site_have_rules) {
  SetCookie cookie("__Host-id", "1");
  EXPECT_NE(written(cookie), "error");
  cookie.path = "/app";
  EXPECT_EQ(written(cookie), "error");
  cookie.path = "/";
  cookie.domain = "example.org";
  EXPECT_EQ(written(cookie), "error");
  cookie.name = "__Secure-id";
  EXPECT_NE(written(cookie), "error");
  for (const char* const name : {"__Secure-id", "__host-id", "__SECURE-id"}) {
    cookie = SetCookie(name, "1");
    cookie.secure = false;
    EXPECT_EQ(written(cookie), "error") << name;
  }
  cookie = SetCookie("a", "1");
  cookie.same_site = SameSite::none;
  cookie.secure = false;
  EXPECT_EQ(written(cookie), "error");
}

TEST(HttpCookies, set_cookie_is_parsed) {
  auto cookie = http::parse_set_cookie(
      "id = a=b ; PATH=/x; path=/y ;domain=.Example.ORG; secure;"
      "HttpOnly; SameSite=STRICT; max-age=10; unknown=1;;");
  ASSERT_TRUE(cookie);
  EXPECT_EQ(cookie->name, "id");
  EXPECT_EQ(cookie->value, "a=b");
  EXPECT_EQ(cookie->path, "/y") << "the last one counts";
  EXPECT_EQ(cookie->domain, "example.org");
  EXPECT_EQ(cookie->max_age, 10s);
  EXPECT_TRUE(cookie->secure && cookie->http_only && cookie->same_site == SameSite::strict);
  cookie = http::parse_set_cookie("a=\"b; path=c; max-age=1x; expires=never; samesite=other");
  ASSERT_TRUE(cookie);
  EXPECT_EQ(cookie->value, "\"b");
  EXPECT_EQ(cookie->path, "");
  EXPECT_FALSE(cookie->max_age || cookie->expires || cookie->secure || cookie->http_only);
  EXPECT_EQ(cookie->same_site, SameSite::unset);
  EXPECT_EQ(http::parse_set_cookie("a=b; max-age=-5")->max_age, 0s);
  EXPECT_GT(http::parse_set_cookie("a=b; max-age=99999999999999999999")->max_age, 400 * 24h);
  for (const std::string bad : {"", "=", "a", ";a=b", "=b", "a; b=c", "a\nb=c", "a=\x01"})
    EXPECT_FALSE(http::parse_set_cookie(bad)) << bad;
  EXPECT_TRUE(http::parse_set_cookie("a=" + std::string(4095, 'b')));
  EXPECT_FALSE(http::parse_set_cookie("a=" + std::string(4096, 'b')));
}

TEST(HttpCookies, dates) {
  const auto expected = std::chrono::sys_days(2015y / 10 / 21) + 7h + 28min;
  for (const char* const text :
       {"Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21-Oct-2015 07:28:00 GMT", "Wed, 21-Oct-15 07:28:00",
        "Wed Oct 21 07:28:00 2015", "21 october 2015 7:28:0", "2015 oct 21 07:28:00",
        "07:28:00x 21th;octx 15"})
    EXPECT_EQ(http::detail::cookies::parse_cookie_date(text), expected) << text;
  EXPECT_EQ(http::detail::cookies::parse_cookie_date("1 Jan 70 0:0:0"),
            std::chrono::sys_days(1970y / 1 / 1));
  for (const char* const text :
       {"", "21 Oct 2015", "Oct 2015 07:28:00", "31 Feb 2015 07:28:00", "21 Oct 2015 24:00:00",
        "21 Oct 2015 07:60:00", "21 Oct 1600 07:28:00", "21 Oct 20155 07:28:00", "now",
        "0 Oct 2015 07:28:00", "91:22:33 21 Oct 2015", "21 Oct 2015 91:22:33",
        "9:22:93 Oct 2015 07:28:00", "24:00:00 Oct 2015 07:28:00", "1:60:00 Oct 2015 07:28:00"})
    EXPECT_FALSE(http::detail::cookies::parse_cookie_date(text)) << text;
}

// Jars.

class HttpCookieJar : public testing::Test {
 protected:
  static Url url(std::string_view text) { return or_throw(Url::parse(text)); }
  std::size_t store(std::string_view from, std::string_view cookie) {
    Fields fields;
    EXPECT_TRUE(fields.add("Set-Cookie", cookie));
    return jar.store(url(from), fields, now);
  }
  std::string field(std::string_view to, bool is_cross_site = false, bool is_safe = true) {
    return jar.field_for(url(to), now, is_cross_site, is_safe);
  }

  CookieJar jar;
  WallTime now = std::chrono::sys_days(2026y / 1 / 1);
};

TEST_F(HttpCookieJar, hosts_and_domains) {
  EXPECT_EQ(store("http://www.example.org/", "own=1"), 1U);
  EXPECT_EQ(store("http://www.example.org/", "all=2; Domain=example.org"), 1U);
  EXPECT_EQ(store("http://WWW.Example.org/", "same=3; Domain=WWW.example.org"), 1U);
  EXPECT_EQ(field("http://www.example.org/"), "own=1; all=2; same=3");
  EXPECT_EQ(field("http://WWW.EXAMPLE.ORG:8080/"), "own=1; all=2; same=3") << "ports do not count";
  EXPECT_EQ(field("http://example.org/"), "all=2");
  EXPECT_EQ(field("http://a.www.example.org/"), "all=2; same=3");
  EXPECT_EQ(field("http://badexample.org/"), "");
  for (const char* const other : {"example.com", "a.www.example.org", "ample.org", "w.example.org"})
    EXPECT_EQ(store("http://www.example.org/", "x=1; Domain=" + std::string(other)), 0U) << other;
}

TEST_F(HttpCookieJar, public_suffixes_and_addresses) {
  EXPECT_EQ(store("http://example.org/", "x=1; Domain=org"), 0U);
  EXPECT_EQ(store("http://localhost/", "x=1; Domain=localhost"), 1U) << "for itself only";
  EXPECT_EQ(field("http://localhost/"), "x=1");
  EXPECT_EQ(field("http://a.localhost/"), "");
  EXPECT_EQ(store("http://127.0.0.1/", "y=1; Domain=0.0.1"), 0U);
  EXPECT_EQ(store("http://127.0.0.1/", "y=1; Domain=127.0.0.1"), 1U);
  EXPECT_EQ(field("http://127.0.0.1/"), "y=1");
  EXPECT_EQ(store("http://[::1]/", "z=1"), 1U);
  EXPECT_EQ(field("http://[::1]/"), "z=1");
#ifndef TAMBOUR_NO_PSL
  EXPECT_EQ(store("http://example.co.uk/", "x=1; Domain=co.uk"), 0U);
  EXPECT_EQ(store("http://user.github.io/", "x=1; Domain=github.io"), 0U);
  EXPECT_EQ(store("http://github.io/", "x=1; Domain=github.io"), 1U);
  EXPECT_EQ(field("http://user.github.io/"), "");
#endif
}

TEST_F(HttpCookieJar, paths) {
  store("http://a.test/docs/page", "default=1");
  store("http://a.test/docs/page", "root=2; Path=/");
  store("http://a.test/docs/page", "other=3; Path=/other");
  store("http://a.test/docs/page", "slash=4; Path=/docs/sub/");
  store("http://a.test", "top=5");
  EXPECT_EQ(field("http://a.test/docs/sub/page"), "slash=4; default=1; root=2; top=5")
      << "long paths come first, and then the oldest";
  EXPECT_EQ(field("http://a.test/docs"), "default=1; root=2; top=5");
  EXPECT_EQ(field("http://a.test/docsx"), "root=2; top=5");
  EXPECT_EQ(field("http://a.test/other?query"), "other=3; root=2; top=5");
  EXPECT_EQ(field("http://a.test"), "root=2; top=5");
}

TEST_F(HttpCookieJar, time) {
  store("http://a.test/", "session=1");
  store("http://a.test/", "age=2; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
  store("http://a.test/", "date=3; Expires=Thu, 01 Jan 2026 00:02:00 GMT");
  store("http://a.test/", "long=4; Max-Age=999999999");
  now += 59s;
  EXPECT_EQ(field("http://a.test/"), "session=1; age=2; date=3; long=4");
  now += 1s;
  EXPECT_EQ(field("http://a.test/"), "session=1; date=3; long=4");
  now += 60s;
  EXPECT_EQ(field("http://a.test/"), "session=1; long=4");
  now += std::chrono::days(400);
  EXPECT_EQ(field("http://a.test/"), "session=1") << "400 days at most";
  EXPECT_EQ(jar.size(), 4U);
  jar.remove_expired(now);
  EXPECT_EQ(jar.size(), 1U);
}

TEST_F(HttpCookieJar, replacing_and_removing) {
  store("http://a.test/", "a=1");
  now += 1s;
  store("http://a.test/", "b=2");
  store("http://a.test/", "a=3");
  EXPECT_EQ(field("http://a.test/"), "a=3; b=2") << "keeps its age";
  EXPECT_EQ(store("http://a.test/", "a=; Max-Age=0"), 1U);
  EXPECT_EQ(store("http://a.test/", "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"), 1U);
  EXPECT_EQ(jar.size(), 0U);
  EXPECT_EQ(store("http://a.test/", "c=; Max-Age=0"), 1U);
  EXPECT_EQ(jar.size(), 0U);
}

TEST_F(HttpCookieJar, secure_cookies) {
  EXPECT_EQ(store("http://a.test/", "s=1; Secure"), 0U);
  EXPECT_EQ(store("https://a.test/app/", "s=1; Secure"), 1U);
  EXPECT_EQ(field("http://a.test/app/"), "");
  EXPECT_EQ(field("https://a.test/app/"), "s=1");
  // A server without TLS, which may be an attacker in the network, must not replace it.
  EXPECT_EQ(store("http://a.test/app/", "s=2"), 0U);
  EXPECT_EQ(store("http://a.test/app/x/", "s=2"), 0U);
  EXPECT_EQ(store("http://b.a.test/app/", "s=2; Domain=a.test"), 0U);
  EXPECT_EQ(store("http://a.test/", "s=2; Path=/"), 1U) << "its path is less specific";
  EXPECT_EQ(field("https://a.test/app/"), "s=1; s=2");
}

TEST_F(HttpCookieJar, prefixes) {
  EXPECT_EQ(store("https://a.test/", "__Secure-x=1"), 0U);
  EXPECT_EQ(store("https://a.test/", "__Secure-x=1; Secure"), 1U);
  EXPECT_EQ(store("https://a.test/x/", "__Host-x=1; Secure"), 0U);
  EXPECT_EQ(store("https://a.test/", "__HOST-x=1; Secure; Path=/; Domain=a.test"), 0U);
  EXPECT_EQ(store("https://a.test/", "__Host-x=1; Secure; Path=/"), 1U);
  EXPECT_EQ(store("https://a.test/", "x=1; SameSite=None"), 0U);
}

TEST_F(HttpCookieJar, same_site) {
  for (const char* const cookie : {"strict=1; SameSite=Strict", "lax=2; SameSite=Lax", "unset=3",
                                   "none=4; SameSite=None; Secure"})
    store("https://a.test/", cookie);
  EXPECT_EQ(field("https://a.test/"), "strict=1; lax=2; unset=3; none=4");
  EXPECT_EQ(field("https://a.test/", true, true), "lax=2; unset=3; none=4");
  EXPECT_EQ(field("https://a.test/", true, false), "none=4");
  EXPECT_TRUE(CookieJar::is_same_site(url("https://a.test/x"), url("https://a.test:444/y")));
  EXPECT_FALSE(CookieJar::is_same_site(url("https://a.test/"), url("http://a.test/")));
  EXPECT_FALSE(CookieJar::is_same_site(url("https://a.test/"), url("https://b.test/")));
#ifndef TAMBOUR_NO_PSL
  EXPECT_TRUE(CookieJar::is_same_site(url("https://x.a.test/"), url("https://y.a.test/")));
  EXPECT_FALSE(CookieJar::is_same_site(url("https://a.github.io/"), url("https://b.github.io/")));
#endif
}

TEST_F(HttpCookieJar, limits) {
  jar = CookieJar({.cookies_max = 10, .cookies_per_site_max = 4, .field_bytes_max = 12});
  const auto set = [this](const std::string& host, int number) {
    now += 1s;
    store("http://" + host + "/", "c" + std::to_string(number) + "=" + std::to_string(number));
  };
  for (int i = 1; i <= 4; ++i) set("a.test", i);
  now += 1s;
  EXPECT_EQ(field("http://a.test/"), "c1=1; c2=2") << "the field has room for two";
  set("a.test", 5);
  EXPECT_EQ(jar.size(), 4U);
  std::string left;
  for (const auto& entry : jar.entries()) left += entry.name;
  EXPECT_EQ(left.size(), 8U);
  EXPECT_EQ(left.find("c3"), std::string::npos) << "all were used later: " << left;
  for (int i = 1; i <= 4; ++i) set("b.test", i);
  for (int i = 1; i <= 4; ++i) set("c.test", i);
  EXPECT_EQ(jar.size(), 10U);
  // A site that sets many cookies only loses its own.
  for (int i = 1; i <= 100; ++i) set("c.test", i);
  EXPECT_EQ(jar.size(), 10U);
  EXPECT_NE(field("http://b.test/"), "");
}

TEST_F(HttpCookieJar, saving_and_loading) {
  store("https://a.test/x/", "s=1; Secure; HttpOnly; SameSite=Strict; Max-Age=60");
  store("https://www.a.test/", "d=2; Domain=a.test; Path=/");
  CookieJar loaded;
  for (const auto& entry : jar.entries()) EXPECT_TRUE(loaded.add(entry, now));
  jar = std::move(loaded);
  EXPECT_EQ(field("https://a.test/x/"), "s=1; d=2");
  EXPECT_EQ(field("http://a.test/x/"), "d=2");
  for (const CookieJar::Entry& bad :
       {CookieJar::Entry{.name = "a\r\n", .domain = "a.test", .path = "/"},
        CookieJar::Entry{.name = "a", .value = "b; c=d", .domain = "a.test", .path = "/"},
        CookieJar::Entry{.name = "", .domain = "a.test", .path = "/"},
        CookieJar::Entry{.name = "a", .path = "/"}})
    EXPECT_EQ(jar.add(bad, now).error(), http::ErrorCode::bad_cookie);
}

}  // namespace
}  // namespace tambour::cookie_test
