// The Cookie field of requests, and the Set-Cookie field of responses.
#include <tambour/http/cookie.h>

#include <algorithm>
#include <charconv>

#include <tambour/http/date.h>

#include "http/cookies/cookie_date.h"
#include "http/cookies/rules.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace detail::cookies {
namespace {

constexpr std::string_view cookie_space = " \t";

/// cookie-octet: section 4.1.1.
constexpr bool is_cookie_octet(char c) noexcept {
  return c > ' ' && c < 127 && c != '"' && c != ',' && c != ';' && c != '\\';
}

/// A host name that a cookie may name, without a leading dot.
bool is_domain(std::string_view domain) noexcept {
  return !domain.empty() && domain.front() != '.' && domain.back() != '.' &&
         domain.find("..") == std::string_view::npos && std::ranges::all_of(domain, [](char c) {
           return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
         });
}

bool is_path(std::string_view path) noexcept {
  return path.starts_with('/') &&
         std::ranges::all_of(path, [](char c) { return c >= ' ' && c < 127 && c != ';'; });
}

Result<> check(const SetCookie& cookie) noexcept {
  const bool is_valid = !cookie.name.empty() && all_are(cookie.name, token_char) &&
                        std::ranges::all_of(cookie.value, is_cookie_octet) &&
                        cookie.name.size() + cookie.value.size() <= cookie_bytes_max &&
                        (cookie.domain.empty() || is_domain(cookie.domain)) &&
                        (cookie.path.empty() || is_path(cookie.path)) &&
                        cookie.domain.size() <= attribute_bytes_max &&
                        cookie.path.size() <= attribute_bytes_max && obeys_prefix(cookie);
  if (!is_valid) return failure(http::ErrorCode::bad_cookie);
  return {};
}

std::string_view text_of(SameSite same_site) noexcept {
  switch (same_site) {
    case SameSite::strict:
      return "; SameSite=Strict";
    case SameSite::lax:
      return "; SameSite=Lax";
    case SameSite::none:
      return "; SameSite=None";
    default:
      return "";
  }
}

/// Divides at the first `separator`, and removes white space around the parts.
struct Divided {
  Divided(std::string_view text, char separator) noexcept {
    const std::size_t at = text.find(separator);
    has_separator = at != std::string_view::npos;
    name = trim(text.substr(0, at));
    if (has_separator) value = trim(text.substr(at + 1));
  }
  std::string_view name;
  std::string_view value;
  bool has_separator = false;
};

/// Section 5.6.2.
std::optional<std::chrono::seconds> parse_max_age(std::string_view text) noexcept {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return is_digit(c); }))
    return std::nullopt;
  std::int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // The jar limits the age further.
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  if (read.ec != std::errc()) seconds = limit;
  return std::chrono::seconds(is_negative ? 0 : std::min(seconds, limit));
}

SameSite parse_same_site(std::string_view text) noexcept {
  if (equal_ignoring_case(text, "Strict")) return SameSite::strict;
  if (equal_ignoring_case(text, "Lax")) return SameSite::lax;
  return equal_ignoring_case(text, "None") ? SameSite::none : SameSite::unset;
}

/// The last attribute with a name counts.
void read_attribute(std::string_view text, SetCookie& into) {
  const Divided attribute(text, '=');
  std::string_view value = attribute.value;
  if (value.size() > attribute_bytes_max) return;
  if (equal_ignoring_case(attribute.name, "Expires")) {
    if (const auto date = parse_cookie_date(value)) into.expires = date;
  } else if (equal_ignoring_case(attribute.name, "Max-Age")) {
    if (const auto age = parse_max_age(value)) into.max_age = age;
  } else if (equal_ignoring_case(attribute.name, "Domain")) {
    if (value.starts_with('.')) value.remove_prefix(1);
    into.domain = base::lower_case(std::string(value));
  } else if (equal_ignoring_case(attribute.name, "Path")) {
    into.path.assign(value.starts_with('/') ? value : "");
  } else if (equal_ignoring_case(attribute.name, "Secure")) {
    into.secure = true;
  } else if (equal_ignoring_case(attribute.name, "HttpOnly")) {
    into.http_only = true;
  } else if (equal_ignoring_case(attribute.name, "SameSite")) {
    into.same_site = parse_same_site(value);
  }
}

}  // namespace
}  // namespace detail::cookies

std::vector<std::pair<std::string_view, std::string_view>> parse_cookies(const Fields& fields) {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (std::size_t at = fields.find("Cookie"); at != fields.size();
       at = fields.find("Cookie", at + 1)) {
    std::string_view rest = fields[at].value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const detail::cookies::Divided cookie(rest.substr(0, end), '=');
      if (cookie.has_separator) all.emplace_back(cookie.name, cookie.value);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return all;
}

std::optional<std::string_view> cookie_named(const Fields& fields, std::string_view name) noexcept {
  for (std::size_t at = fields.find("Cookie"); at != fields.size();
       at = fields.find("Cookie", at + 1)) {
    std::string_view rest = fields[at].value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const detail::cookies::Divided cookie(rest.substr(0, end), '=');
      if (cookie.has_separator && cookie.name == name) return cookie.value;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return std::nullopt;
}

Result<std::string> format_set_cookie(const SetCookie& cookie) {
  if (const auto checked = detail::cookies::check(cookie); !checked)
    return std::unexpected(checked.error());
  std::string text = cookie.name + "=" + cookie.value;
  if (!cookie.domain.empty()) text.append("; Domain=").append(cookie.domain);
  if (!cookie.path.empty()) text.append("; Path=").append(cookie.path);
  if (cookie.expires) text.append("; Expires=").append(format_date(*cookie.expires));
  if (cookie.max_age) text.append("; Max-Age=").append(std::to_string(cookie.max_age->count()));
  if (cookie.secure) text.append("; Secure");
  if (cookie.http_only) text.append("; HttpOnly");
  return text.append(detail::cookies::text_of(cookie.same_site));
}

Result<> add_cookie(Fields& fields, const SetCookie& cookie) {
  const auto text = format_set_cookie(cookie);
  if (!text) return std::unexpected(text.error());
  return fields.add("Set-Cookie", *text);
}

Result<> remove_cookie(Fields& fields, std::string_view name, std::string_view path,
                       std::string_view domain) {
  SetCookie cookie((std::string(name)), "");
  cookie.path.assign(path);
  cookie.domain.assign(domain);
  cookie.max_age = std::chrono::seconds(0);
  // For clients that do not know Max-Age.
  cookie.expires = std::chrono::sys_seconds();
  // Clients without TLS ignore a cookie with Secure.
  cookie.secure = detail::cookies::has_prefix(name, "__Secure-") ||
                  detail::cookies::has_prefix(name, "__Host-");
  return add_cookie(fields, cookie);
}

Result<SetCookie> parse_set_cookie(std::string_view text) {
  if (!all_are(text, value_char) && !text.empty()) return failure(ErrorCode::bad_cookie);
  const std::size_t end = std::min(text.find(';'), text.size());
  const detail::cookies::Divided pair(text.substr(0, end), '=');
  // A cookie without "=" has no name: a server would read it as another one.
  if (pair.name.empty() || pair.name.size() + pair.value.size() > detail::cookies::cookie_bytes_max)
    return failure(ErrorCode::bad_cookie);
  if (!pair.has_separator) return failure(ErrorCode::bad_cookie);
  SetCookie cookie((std::string(pair.name)), std::string(pair.value));
  cookie.path.clear();
  cookie.same_site = SameSite::unset;
  cookie.secure = cookie.http_only = false;
  text.remove_prefix(end);
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::size_t attribute_end = std::min(text.find(';'), text.size());
    detail::cookies::read_attribute(text.substr(0, attribute_end), cookie);
    text.remove_prefix(attribute_end);
  }
  return cookie;
}

}  // namespace tambour::http
