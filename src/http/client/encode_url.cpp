// encode_url(): encodes what browsers accept in URLs and RFC 3986 does not.
#include "http/client/encode_url.h"

#include <algorithm>

#include <tambour/http/url.h>

#include "http_message/characters.h"

namespace tambour::http::detail::client {
namespace {

bool is_encoded_byte(std::string_view text, std::size_t at) noexcept {
  return text[at] == '%' && text.size() - at >= 3 && hex_value(text[at + 1]) >= 0 &&
         hex_value(text[at + 2]) >= 0;
}

bool is_control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == 127;
}

void append_encoded(std::string& to, std::string_view text, CharacterClass allowed) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is(text[i], allowed) || is_encoded_byte(text, i) || is_control(text[i])) {
      to += text[i];
    } else {
      to += percent_encode(text.substr(i, 1), UrlComponent::unreserved);
    }
  }
}

bool is_scheme(std::string_view text) noexcept {
  return !text.empty() && is_letter(text[0]) && all_are(text, scheme_char);
}

/// Without its tabs and the blanks at both ends.
std::string remove_blanks(std::string_view text) {
  std::string removed(trim(text));
  std::erase(removed, '\t');
  return removed;
}

/// Scheme, authority and path.
void append_hierarchy(std::string& to, std::string hierarchy) {
  std::size_t at = 0;
  const std::size_t colon = hierarchy.find_first_of(":/\\");
  bool is_web = true;
  if (colon != std::string::npos && hierarchy[colon] == ':') {
    const auto scheme = std::string_view(hierarchy).substr(0, colon);
    if (is_scheme(scheme)) {
      at = colon + 1;
      is_web = equal_ignoring_case(scheme, "http") || equal_ignoring_case(scheme, "https");
      to.append(hierarchy, 0, at);
    } else {
      to += "./";
    }
  }
  if (is_web) std::ranges::replace(hierarchy, '\\', '/');
  std::string_view rest = std::string_view(hierarchy).substr(at);
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::string_view authority = rest.substr(0, rest.find('/'));
    rest.remove_prefix(authority.size());
    const std::size_t user_end = authority.rfind('@');
    const bool has_user = user_end != std::string_view::npos;
    to += "//";
    if (has_user) append_encoded(to, authority.substr(0, user_end), user_char);
    to += authority.substr(has_user ? user_end : 0);
  }
  append_encoded(to, rest, path_char);
}

}  // namespace

std::string encode_url(std::string_view text) {
  const std::string cleaned = remove_blanks(text);
  const std::string_view all = cleaned;
  const std::size_t fragment = std::min(all.find('#'), all.size());
  const std::size_t query = std::min(all.substr(0, fragment).find('?'), fragment);
  std::string encoded;
  encoded.reserve(all.size());
  append_hierarchy(encoded, cleaned.substr(0, query));
  if (query < fragment)
    append_encoded(encoded += '?', all.substr(query + 1, fragment - query - 1), query_char);
  if (fragment < all.size()) append_encoded(encoded += '#', all.substr(fragment + 1), query_char);
  return encoded;
}

}  // namespace tambour::http::detail::client
