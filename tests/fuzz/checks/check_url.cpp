// URLs, compared with a plain division of the text, and with their normal form.
#include <algorithm>
#include <optional>
#include <string>

#include <tambour/http/url.h>

#include "fuzz/bytes_checks.h"
#include "http/client/encode_url.h"

namespace tambour::fuzz {
namespace {

using http::Url;
using http::UrlComponent;
using http::UrlParts;

bool is_in(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%" +
             std::string(allowed)) == std::string_view::npos;
}

bool is_encoded(std::string_view text) {
  for (std::size_t at = 0; (at = text.find('%', at)) != std::string_view::npos; ++at) {
    const std::string_view digits = text.substr(at + 1, 2);
    if (digits.size() < 2 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return false;
  }
  return true;
}

/// Divides the text as the regular expression of RFC 3986, appendix B, does.
UrlParts divide(std::string_view text) {
  UrlParts parts;
  if (const std::size_t at = text.find('#'); at != std::string_view::npos) {
    parts.fragment = text.substr(at + 1);
    text = text.substr(0, at);
  }
  if (const std::size_t at = text.find('?'); at != std::string_view::npos) {
    parts.query = text.substr(at + 1);
    text = text.substr(0, at);
  }
  if (const std::size_t at = text.find_first_of(":/");
      at != std::string_view::npos && text[at] == ':') {
    parts.scheme = text.substr(0, at);
    text = text.substr(at + 1);
  }
  if (text.starts_with("//")) {
    const std::size_t end = std::min(text.find('/', 2), text.size());
    parts.authority = text.substr(2, end - 2);
    text = text.substr(end);
  }
  parts.path = text;
  return parts;
}

bool same(const UrlParts& a, const UrlParts& b) {
  return a.scheme == b.scheme && a.authority == b.authority && a.path == b.path &&
         a.query == b.query && a.fragment == b.fragment;
}

constexpr std::string_view pchar = "!$&'()*+,;=:@";

/// False if the text is certainly not a URL. Hosts and ports are not examined completely.
bool may_be_valid(std::string_view text, const UrlParts& parts) {
  if (parts.scheme) {
    const std::string_view scheme = *parts.scheme;
    if (scheme.empty() || scheme.find_first_of("-._~%0123456789+") == 0) return false;
    if (scheme.find_first_of("_~%") != std::string_view::npos || !is_in(scheme, "+")) return false;
  }
  const std::string path_chars = std::string(pchar) + "/";
  return is_encoded(text) && is_in(parts.authority.value_or(""), std::string(pchar) + "[]") &&
         is_in(parts.path, path_chars) && is_in(parts.query.value_or(""), path_chars + "?") &&
         is_in(parts.fragment.value_or(""), path_chars + "?");
}

void check_authority(const Url& url) {
  std::string again;
  if (url.userinfo()) again.append(*url.userinfo()) += '@';
  again += url.has_ip_literal() ? '[' + std::string(url.host()) + ']' : std::string(url.host());
  const std::string_view rest = url.authority();
  expect(rest.starts_with(again), "the authority does not begin with userinfo and host");
  const std::string_view port = rest.substr(again.size());
  expect(port.empty() || port.front() == ':', "the host does not end at a colon");
  expect(url.port().has_value() == (port.size() > 1), "a port is missing");
  if (url.port())
    expect(std::stoi(std::string(port.substr(1))) == *url.port(), "the port has another value");
}

void check_valid(const Url& url) {
  check_authority(url);
  const auto composed = Url::compose(url.parts());
  expect(composed && *composed == url, "a URL changed when it was composed again");
  const Url normal = url.normalized();
  expect(normal.normalized() == normal, "the normal form has another normal form");
  expect(normal.is_absolute() == url.is_absolute() && normal.has_authority() == url.has_authority(),
         "the normal form lacks a component");
  const auto base = Url::parse("http://a/b/c?d").value();
  for (const auto& target : {base.resolve(url), url.resolve(base), url.resolve(url)}) {
    if (!target) {
      expect(target.error() == http::ErrorCode::url_not_absolute ||
                 target.error() == http::ErrorCode::url_ambiguous_path ||
                 target.error() == http::ErrorCode::url_too_long,
             "resolve() failed with another error");
      continue;
    }
    expect(target->is_absolute(), "a resolved URL is not absolute");
    expect(target->resolve(Url())->to_string() ==
               target->to_string().substr(0, target->to_string().find('#')),
           "the empty reference does not refer to the document");
  }
}

/// What clients make of text that need not be a URL.
void check_encoded(std::string_view text) {
  const std::string encoded = http::detail::client::encode_url(text);
  expect(http::detail::client::encode_url(encoded) == encoded, "encoding twice changes the text");
  const auto url = Url::parse(encoded);
  const bool has_control = std::ranges::any_of(
      encoded, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; });
  if (has_control) expect(!url, "a control character was accepted in a URL");
  const bool has_space = encoded.find(' ') != std::string::npos;
  if (has_space) expect(!url, "a space was accepted in a URL");
  if (Url::parse(text)) expect(encoded == text, "a URL changed when it was encoded");
  // Only hosts, ports, lengths and control characters can be wrong.
  if (!url && !has_control && encoded.size() <= Url::size_max && encoded.find("//") == encoded.npos)
    expect(false, "text without an authority was not made a URL");
}

}  // namespace

void check_url(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const auto url = Url::parse(text);
  const UrlParts parts = divide(text);
  const bool plausible = may_be_valid(text, parts);
  if (url) {
    expect(plausible, "text was accepted that is not a URL");
    expect(same(url->parts(), parts), "the components differ from those of the model");
    check_valid(*url);
  } else {
    expect(!plausible || url.error() == http::ErrorCode::url_bad_host ||
               url.error() == http::ErrorCode::url_bad_port ||
               url.error() == http::ErrorCode::url_bad_character,
           "a URL was rejected");
    if (!parts.authority) expect(!plausible, "a URL without an authority was rejected");
  }
  check_encoded(text);
  for (const auto component :
       {UrlComponent::path, UrlComponent::path_segment, UrlComponent::query, UrlComponent::fragment,
        UrlComponent::user, UrlComponent::unreserved}) {
    const auto decoded = http::percent_decode(http::percent_encode(text, component));
    expect(decoded && *decoded == text, "text changed when it was encoded and decoded");
  }
  const std::string path = http::remove_dot_segments(text);
  expect(http::remove_dot_segments(path) == path, "dot segments remain");
  const auto query = http::parse_query(text, 10000);
  if (query)
    expect(http::parse_query(http::format_query(*query), 10000) == query,
           "query parameters changed when they were written and read again");
}

}  // namespace tambour::fuzz
