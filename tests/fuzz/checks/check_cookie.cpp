// Cookies: arbitrary Cookie and Set-Cookie fields, read and written again, and in a jar.
#include <algorithm>
#include <string>

#include <tambour/http/cookie.h>

#include "fuzz/bytes_checks.h"
#include "http/cookies/cookie_date.h"

namespace tambour::fuzz {
namespace {

using http::CookieJar;
using http::Fields;
using http::SetCookie;
using http::Url;

/// What is written must be read in the same way, and must contain nothing that was not meant.
void check_written(const SetCookie& cookie) {
  const auto text = http::format_set_cookie(cookie);
  if (!text) return;
  expect(std::ranges::all_of(*text, [](char c) { return c >= ' ' && c < 127; }),
         "a cookie has characters that no field has");
  const auto again = http::parse_set_cookie(*text);
  expect(again.has_value(), "a cookie that was written cannot be read");
  expect(again->name == cookie.name && again->value == cookie.value &&
             again->domain.size() == cookie.domain.size() && again->path == cookie.path &&
             again->secure == cookie.secure && again->http_only == cookie.http_only &&
             again->same_site == cookie.same_site,
         "a cookie changed when it was written and read");
}

void check_request(const Fields& fields) {
  for (const auto& [name, value] : http::parse_cookies(fields)) {
    const auto found = http::cookie_named(fields, name);
    expect(found.has_value(), "a cookie is not found by its name");
    expect(value.find(';') == std::string_view::npos, "a value contains a separator");
  }
}

void check_jar(const Fields& fields) {
  const WallTime now = std::chrono::sys_days(std::chrono::days(20'000));
  for (const char* const from : {"https://www.example.org/a/b", "http://www.example.org/a/b"}) {
    CookieJar jar({.cookies_max = 5, .cookies_per_site_max = 3, .field_bytes_max = 1000});
    const Url url = Url::parse(from).value();
    jar.store(url, fields, now);
    expect(jar.size() <= 3 && jar.entries().size() == jar.size(), "the jar exceeds its limit");
    for (const CookieJar::Entry& current_entry : jar.entries()) {
      expect(current_entry.domain == "www.example.org" || current_entry.domain == "example.org",
             "a cookie for another domain was stored");
      expect(current_entry.expires > now, "a cookie was stored that has expired");
      expect(!current_entry.secure || std::string_view(from).starts_with("https"),
             "a secure cookie was stored without TLS");
      expect(jar.add(current_entry, now).has_value(), "a cookie of the jar cannot be added to it");
    }
    const std::string field = jar.field_for(url, now);
    expect(field.size() <= 1000, "the field exceeds its limit");
    Fields sent;
    expect(sent.add("Cookie", field).has_value(), "the field cannot be sent");
    for (const char* const other : {"https://example.com/a/b", "https://org/a/b", "https://e.org/"})
      expect(jar.field_for(Url::parse(other).value(), now).empty(), "sent to another domain");
    jar.remove_expired(now + std::chrono::days(401));
    for (const CookieJar::Entry& entry : jar.entries())
      expect(entry.expires == WallTime::max(), "a cookie lives too long");
  }
}

}  // namespace

/// Lines are fields. The first byte of a line that is written chooses attributes.
void check_cookie(Bytes bytes) {
  std::string_view text = text_of(bytes);
  static_cast<void>(http::detail::cookies::parse_cookie_date(text));
  Fields fields;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    static_cast<void>(fields.add("Set-Cookie", line));
    static_cast<void>(fields.add("Cookie", line));
    const auto cookie = http::parse_set_cookie(line);
    if (cookie) check_written(*cookie);
    const std::size_t middle = line.size() / 2;
    SetCookie set_cookie(std::string(line.substr(0, middle)), std::string(line.substr(middle)));
    check_written(set_cookie);
    set_cookie.domain.assign(line);
    set_cookie.path.assign(line);
    check_written(set_cookie);
  }
  check_request(fields);
  check_jar(fields);
}

}  // namespace tambour::fuzz
