// Parsing, composition and resolution of URLs: RFC 3986.
#include <arpa/inet.h>

#include <cerrno>

#include <tambour/http_url.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "http/characters.h"
#include "http/failure.h"

namespace tambour::http {
namespace {

/// Checks a component: characters of `allowed`, and percent-encoded bytes.
Result<> check_component(std::string_view text, CharacterClass allowed) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is(text[i], allowed)) [[likely]]
      continue;
    if (text[i] != '%') return failure(HttpError::url_bad_character);
    if (text.size() - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
      return failure(HttpError::url_bad_encoding);
    i += 2;
  }
  return {};
}

/// IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
bool is_future_address(std::string_view text) {
  if (to_lower(text.front()) != 'v') return false;
  std::size_t i = 1;
  while (i < text.size() && hex_value(text[i]) >= 0) ++i;
  if (i == 1 || i + 1 >= text.size() || text[i] != '.') return false;
  return all_are(text.substr(i + 1), user_char);
}

bool is_ip_literal(std::string_view text) {
  if (text.empty()) return false;
  if (is_future_address(text)) return true;
  in6_addr address;
  return text.size() < INET6_ADDRSTRLEN && text.find('\0') == std::string_view::npos &&
         ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

std::size_t find_end(std::string_view text, std::string_view delimiters, std::size_t from) {
  const std::size_t at = text.find_first_of(delimiters, from);
  return at == std::string_view::npos ? text.size() : at;
}

/// RFC 3986, section 5.2.3.
std::string merge_paths(const UrlParts& base, std::string_view path) {
  if (base.authority && base.path.empty()) return '/' + std::string(path);
  return std::string(base.path.substr(0, base.path.rfind('/') + 1)).append(path);
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  if (text.size() > size_max) return failure(HttpError::url_too_long);
  Url url;
  url.text_ = text;
  if (const auto parsed = url.parse_parts(); !parsed) return std::unexpected(parsed.error());
  return url;
}

Result<> Url::parse_parts() {
  if (auto scheme = parse_scheme(); !scheme) return scheme;
  const std::string_view text = text_;
  std::size_t at = has_scheme_ ? scheme_end_ + 1U : 0;
  has_authority_ = text.substr(at).starts_with("//");
  if (has_authority_) at += 2;
  authority_begin_ = host_begin_ = host_end_ = static_cast<std::uint16_t>(at);
  if (has_authority_) at = find_end(text, "/?#", at);
  path_begin_ = static_cast<std::uint16_t>(at);
  if (has_authority_) {
    if (auto authority = parse_authority(); !authority) return authority;
  }
  at = find_end(text, "?#", at);
  path_end_ = query_end_ = static_cast<std::uint16_t>(at);
  has_query_ = at < text.size() && text[at] == '?';
  if (has_query_) query_end_ = static_cast<std::uint16_t>(find_end(text, "#", at));
  has_fragment_ = query_end_ < text.size();
  if (auto checked = check_component(path(), path_char); !checked) return checked;
  if (auto checked = check_component(query().value_or(""), query_char); !checked) return checked;
  return check_component(fragment().value_or(""), query_char);
}

Result<> Url::parse_scheme() {
  const std::size_t end = find_end(text_, ":/?#", 0);
  if (end == text_.size() || text_[end] != ':') return {};
  const std::string_view name = slice(0, end);
  // In a relative reference, the first segment of the path must not contain a colon (section 4.2).
  if (name.empty() || !is_letter(name[0]) || !all_are(name, scheme_char))
    return failure(HttpError::url_bad_scheme);
  has_scheme_ = true;
  scheme_end_ = static_cast<std::uint16_t>(end);
  return {};
}

Result<> Url::parse_authority() {
  std::string_view rest = authority();
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    has_userinfo_ = true;
    host_begin_ = static_cast<std::uint16_t>(authority_begin_ + at + 1);
    if (auto checked = check_component(rest.substr(0, at), user_char); !checked) return checked;
    rest.remove_prefix(at + 1);
  }
  std::size_t host_size = 0;
  std::string_view port;
  if (rest.starts_with('[')) {
    has_brackets_ = true;
    host_size = rest.find(']');
    if (host_size == std::string_view::npos || !is_ip_literal(rest.substr(1, host_size - 1)))
      return failure(HttpError::url_bad_host);
    port = rest.substr(host_size + 1);
    ++host_begin_;
    host_end_ = static_cast<std::uint16_t>(host_begin_ + host_size - 1);
  } else {
    host_size = find_end(rest, ":", 0);
    if (!check_component(rest.substr(0, host_size), host_char))
      return failure(HttpError::url_bad_host);
    port = rest.substr(host_size);
    host_end_ = static_cast<std::uint16_t>(host_begin_ + host_size);
  }
  return parse_port(port);
}

/// `text`: empty, or a colon and the digits.
Result<> Url::parse_port(std::string_view text) {
  if (text.empty()) return {};
  if (text.front() != ':') return failure(HttpError::url_bad_host);
  text.remove_prefix(1);
  if (text.empty()) return {};
  const auto number = base::parse_number<std::uint16_t>(text);
  if (!number) return failure(HttpError::url_bad_port);
  port_ = *number;
  return {};
}

std::optional<std::string_view> Url::userinfo() const noexcept {
  if (!has_userinfo_) return std::nullopt;
  return slice(authority_begin_, host_begin_ - (has_brackets_ ? 2U : 1U));
}

std::optional<std::string_view> Url::query() const noexcept {
  if (!has_query_) return std::nullopt;
  return slice(path_end_ + 1U, query_end_);
}

std::optional<std::string_view> Url::fragment() const noexcept {
  if (!has_fragment_) return std::nullopt;
  return slice(query_end_ + 1U, text_.size());
}

UrlParts Url::parts() const noexcept {
  UrlParts parts{.path = path(), .query = query(), .fragment = fragment()};
  if (has_scheme_) parts.scheme = scheme();
  if (has_authority_) parts.authority = authority();
  return parts;
}

Result<Url> Url::compose(const UrlParts& parts) {
  const bool is_misread = parts.authority ? !parts.path.empty() && !parts.path.starts_with('/')
                                          : parts.path.starts_with("//");
  if (is_misread) return failure(HttpError::url_ambiguous_path);
  std::string text;
  if (parts.scheme) text.append(*parts.scheme) += ':';
  if (parts.authority) text.append("//").append(*parts.authority);
  text.append(parts.path);
  if (parts.query) (text += '?').append(*parts.query);
  if (parts.fragment) (text += '#').append(*parts.fragment);
  auto url = parse(text);
  if (!url) return url;
  const UrlParts read = url->parts();
  if (read.scheme != parts.scheme || read.authority != parts.authority || read.path != parts.path ||
      read.query != parts.query || read.fragment != parts.fragment)
    return failure(HttpError::url_ambiguous_path);
  return url;
}

std::uint16_t default_port(std::string_view scheme) noexcept {
  if (equal_ignoring_case(scheme, "http") || equal_ignoring_case(scheme, "ws")) return 80;
  if (equal_ignoring_case(scheme, "https") || equal_ignoring_case(scheme, "wss")) return 443;
  return 0;
}

std::string Url::request_target() const {
  std::string target(path());
  if (!target.starts_with('/')) target.insert(target.begin(), '/');
  if (has_query_) (target += '?').append(*query());
  return target;
}

Result<Url> Url::resolve(const Url& reference) const {
  if (!has_scheme_) return failure(HttpError::url_not_absolute);
  const UrlParts base = parts();
  UrlParts target = reference.parts();
  std::string path;
  if (target.scheme || target.authority) {
    path = remove_dot_segments(target.path);
  } else if (target.path.empty()) {
    path = base.path;
    if (!target.query) target.query = base.query;
  } else if (target.path.starts_with('/')) {
    path = remove_dot_segments(target.path);
  } else {
    path = remove_dot_segments(merge_paths(base, target.path));
  }
  if (!target.scheme) {
    if (!target.authority) target.authority = base.authority;
    target.scheme = base.scheme;
  }
  target.path = path;
  return compose(target);
}

}  // namespace tambour::http
