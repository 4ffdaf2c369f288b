// The text of URLs: percent-encoding, dot segments, normalization, query parameters.
#include <algorithm>
#include <cerrno>

#include <tambour/http/url.h>

#include "base/failure.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

constexpr std::string_view hex_digits = "0123456789ABCDEF";

void append_encoded(std::string& to, char c) {
  const auto byte = static_cast<unsigned char>(c);
  to += '%';
  to += hex_digits[byte >> 4];
  to += hex_digits[byte & 15];
}

/// The byte that is encoded at index `at`, or -1.
int encoded_byte(std::string_view text, std::size_t at) {
  if (text[at] != '%' || text.size() - at < 3) return -1;
  const int high = hex_value(text[at + 1]);
  const int low = hex_value(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool may_occur(char c, UrlComponent component) {
  switch (component) {
    case UrlComponent::path:
      return is(c, path_char);
    case UrlComponent::path_segment:
      return is(c, path_char) && c != '/';
    case UrlComponent::query:
    case UrlComponent::fragment:
      return is(c, query_char);
    case UrlComponent::user:
      return is(c, user_char) && c != ':';
    case UrlComponent::unreserved:
      break;
  }
  return is(c, unreserved_char);
}

/// Decodes unreserved characters and writes the other encoded bytes in upper case.
std::string normalize_encoding(std::string_view text, bool lowers = false) {
  std::string normalized;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = encoded_byte(text, i);
    const char c = byte < 0 ? text[i] : static_cast<char>(byte);
    if (byte >= 0) i += 2;
    if (byte >= 0 && !is(c, unreserved_char)) {
      append_encoded(normalized, c);
    } else {
      normalized += lowers ? to_lower(c) : c;
    }
  }
  return normalized;
}

std::string decode_form(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = encoded_byte(text, i);
    if (byte >= 0) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

void append_form(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c == ' ') {
      to += '+';
    } else if (is(c, unreserved_char)) {
      to += c;
    } else {
      append_encoded(to, c);
    }
  }
}

}  // namespace

std::string percent_encode(std::string_view text, UrlComponent component) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (may_occur(c, component)) {
      encoded += c;
    } else {
      append_encoded(encoded, c);
    }
  }
  return encoded;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (true) {
    const std::size_t plain = std::min(text.find('%'), text.size());
    decoded.append(text, 0, plain);
    if (plain == text.size()) return decoded;
    const int byte = encoded_byte(text, plain);
    if (byte < 0) return failure(ErrorCode::url_bad_encoding);
    decoded += static_cast<char>(byte);
    text.remove_prefix(plain + 3);
  }
}

std::string remove_dot_segments(std::string_view path) {
  std::string output;
  output.reserve(path.size());
  while (!path.empty()) {
    if (path.starts_with("../")) {
      path.remove_prefix(3);
    } else if (path.starts_with("./") || path.starts_with("/./")) {
      path.remove_prefix(2);
    } else if (path == "/.") {
      path = "/";
    } else if (path.starts_with("/../") || path == "/..") {
      path = path.size() == 3 ? "/" : path.substr(3);
      output.resize(output.rfind('/') == std::string::npos ? 0 : output.rfind('/'));
    } else if (path == "." || path == "..") {
      break;
    } else {
      const std::size_t end = path.find('/', 1);
      output.append(path.substr(0, end));
      path = end == std::string_view::npos ? "" : path.substr(end);
    }
  }
  return output;
}

Url Url::normalized() const {
  UrlParts normal;
  const std::string scheme_text = detail::base::lower_case(std::string(scheme()));
  if (has_scheme_) normal.scheme = scheme_text;

  const bool is_web = scheme_text == "http" || scheme_text == "https" || scheme_text == "ws" ||
                      scheme_text == "wss";
  std::string authority_text;
  if (has_userinfo_) authority_text = normalize_encoding(*userinfo()) + '@';
  const std::string host_text = normalize_encoding(host(), true);
  authority_text += has_brackets_ ? '[' + host_text + ']' : host_text;
  if (port_ && !(is_web && *port_ == default_port(scheme_text)))
    (authority_text += ':') += std::to_string(*port_);
  if (has_authority_) normal.authority = authority_text;

  std::string path_text = normalize_encoding(path());
  if (path_text.starts_with('/')) {
    std::string short_path = remove_dot_segments(path_text);
    // Without an authority, a path must not begin with "//".
    if (has_authority_ || !short_path.starts_with("//")) path_text = std::move(short_path);
  }
  if (path_text.empty() && is_web && has_authority_) path_text += '/';
  normal.path = path_text;

  const std::string query_text = normalize_encoding(query().value_or(""));
  if (has_query_) normal.query = query_text;
  const std::string fragment_text = normalize_encoding(fragment().value_or(""));
  if (has_fragment_) normal.fragment = fragment_text;
  // Adding "/" may exceed the maximum size.
  return compose(normal).value_or(*this);
}

Result<QueryParameters> parse_query(std::string_view query, std::size_t count_max) {
  QueryParameters parameters;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    if (parameters.size() == count_max) return detail::base::failure(EMSGSIZE);
    const std::size_t equals = pair.find('=');
    parameters.emplace_back(
        decode_form(pair.substr(0, equals)),
        equals == std::string_view::npos ? "" : decode_form(pair.substr(equals + 1)));
  }
  return parameters;
}

std::string format_query(const QueryParameters& parameters) {
  std::string query;
  for (const auto& [name, value] : parameters) {
    if (!query.empty()) query += '&';
    append_form(query, name);
    query += '=';
    append_form(query, value);
  }
  return query;
}

}  // namespace tambour::http
