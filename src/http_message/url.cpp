// Parsing, composition and resolution of URLs: RFC 3986.
#include <tambour/http/url.h>

#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/url_syntax.h"

namespace tambour::http {
namespace {

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
  if (text.size() > size_max) return failure(ErrorCode::url_too_long);
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
    return failure(ErrorCode::url_bad_scheme);
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
  const auto parsed = parse_host_and_port(rest);
  if (!parsed) return std::unexpected(parsed.error());
  has_brackets_ = rest.starts_with('[');
  if (has_brackets_) ++host_begin_;
  host_end_ = static_cast<std::uint16_t>(host_begin_ + parsed->host.size());
  port_ = parsed->port;
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
  if (is_misread) return failure(ErrorCode::url_ambiguous_path);
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
    return failure(ErrorCode::url_ambiguous_path);
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
  if (!has_scheme_) return failure(ErrorCode::url_not_absolute);
  const UrlParts base = parts();
  UrlParts target = reference.parts();
  std::string path;
  if (target.scheme || target.authority || target.path.starts_with('/')) {
    path = remove_dot_segments(target.path);
  } else if (target.path.empty()) {
    path = base.path;
    if (!target.query) target.query = base.query;
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
