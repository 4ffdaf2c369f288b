// URIs of event2/http.h: RFC 3986, with the differences of libevent. A reference may be relative,
// and with EVHTTP_URI_NONCONFORMANT, path, query and fragment may contain any character that does
// not end them.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include <event2/http.h>
#include <event2/util.h>

#include "libevent/event/core.h"
#include "libevent/http/http_characters.h"
#include "libevent/http/http_text.h"

using tambour::libevent::copy_text;
using tambour::libevent::is_alphanumeric;
using tambour::libevent::is_digit;
using tambour::libevent::is_hex_digit;
using tambour::libevent::is_letter;
using tambour::libevent::is_unreserved;

/// The members are allocated by event_mm_malloc_(), or null.
struct evhttp_uri {
  unsigned flags;
  char* scheme;
  char* userinfo;
  char* host;
  int port;  ///< -1: none.
  char* path;
  char* query;
  char* fragment;
};

namespace {

constexpr int port_max = 65535;

bool assign(char*& member, std::string_view text) noexcept {
  char* const copy = copy_text(text);
  if (copy == nullptr) return false;
  if (member != nullptr) event_mm_free_(member);
  member = copy;
  return true;
}

/// Null removes the member.
int set(char*& member, const char* text) noexcept {
  if (text != nullptr) return assign(member, text) ? 0 : -1;
  if (member != nullptr) event_mm_free_(member);
  member = nullptr;
  return 0;
}

constexpr bool is_subdelimiter(char c) noexcept {
  return std::string_view("!$&'()*+,;=").find(c) != std::string_view::npos;
}

/// The length of the longest beginning that consists of unreserved characters, sub-delimiters,
/// percent-encoded bytes, and the characters of `others`.
std::size_t span(std::string_view text, std::string_view others) noexcept {
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (is_unreserved(c) || is_subdelimiter(c) || others.find(c) != std::string_view::npos) {
      ++i;
    } else if (c == '%' && i + 2 < text.size() && is_hex_digit(text[i + 1]) &&
               is_hex_digit(text[i + 2])) {
      i += 3;
    } else {
      break;
    }
  }
  return i;
}
bool consists_of(std::string_view text, std::string_view others) noexcept {
  return span(text, others) == text.size();
}

bool is_scheme(std::string_view text) noexcept {
  if (text.empty() || !is_letter(text.front())) return false;
  for (const char c : text) {
    if (!is_alphanumeric(c) && c != '+' && c != '-' && c != '.') return false;
  }
  return true;
}

/// "v", hexadecimal digits, a dot, and an address of that version.
bool is_future_address(std::string_view text) noexcept {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot < 2) return false;
  for (const char c : text.substr(1, dot - 1)) {
    if (!is_hex_digit(c)) return false;
  }
  for (const char c : text.substr(dot + 1)) {
    if (!is_unreserved(c) && !is_subdelimiter(c) && c != ':') return false;
  }
  return true;
}

bool is_bracketed_address(std::string_view text) noexcept {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  const std::string_view address = text.substr(1, text.size() - 2);
  if (address.front() == 'v') return is_future_address(address);
  char terminated[64];
  if (address.size() >= sizeof terminated) return false;
  address.copy(terminated, address.size());
  terminated[address.size()] = '\0';
  in6_addr parsed{};
  return evutil_inet_pton(AF_INET6, terminated, &parsed) == 1;
}

bool is_host(std::string_view text) noexcept {
  return text.starts_with('[') ? is_bracketed_address(text) : consists_of(text, "");
}

enum class Part { path, query, fragment };

/// The length of a part at the beginning of `text`.
std::size_t length_of(Part part, std::string_view text, unsigned flags) noexcept {
  if ((flags & EVHTTP_URI_NONCONFORMANT) == 0)
    return span(text, part == Part::path ? ":@/" : ":@/?");
  const char* const ends = part == Part::path ? "?#" : (part == Part::query ? "#" : "");
  const std::size_t end = text.find_first_of(ends);
  return end == std::string_view::npos ? text.size() : end;
}

/// Removes the part from the beginning of `text`.
std::string_view take(Part part, std::string_view& text, unsigned flags) noexcept {
  const std::size_t length = length_of(part, text, flags);
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

bool is_part(Part part, const char* text, unsigned flags) noexcept {
  return text == nullptr || length_of(part, text, flags) == std::strlen(text);
}

/// Removes a port from the end. Returns false if it is too large.
bool take_port(std::string_view& authority, int& port) noexcept {
  std::size_t digits = 0;
  while (digits < authority.size() && is_digit(authority[authority.size() - 1 - digits])) ++digits;
  if (digits == authority.size() || authority[authority.size() - 1 - digits] != ':') return true;
  int number = 0;
  for (const char c : authority.substr(authority.size() - digits)) {
    number = number * 10 + (c - '0');
    if (number > port_max) return false;
  }
  if (digits != 0) port = number;
  authority.remove_suffix(digits + 1);
  return true;
}

bool parse_authority(evhttp_uri& uri, std::string_view authority) noexcept {
  if (const std::size_t at = authority.find('@'); at != std::string_view::npos) {
    const std::string_view userinfo = authority.substr(0, at);
    if (!consists_of(userinfo, ":") || !assign(uri.userinfo, userinfo)) return false;
    authority.remove_prefix(at + 1);
  }
  return take_port(authority, uri.port) && is_host(authority) && assign(uri.host, authority);
}

bool parse(evhttp_uri& uri, std::string_view rest) noexcept {
  if (const std::size_t colon = rest.find(':');
      colon != std::string_view::npos && is_scheme(rest.substr(0, colon))) {
    if (!assign(uri.scheme, rest.substr(0, colon))) return false;
    rest.remove_prefix(colon + 1);
  }
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::size_t end = rest.find_first_of("/?#");
    if (!parse_authority(uri, rest.substr(0, end))) return false;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
  }
  const std::string_view path = take(Part::path, rest, uri.flags);
  // It would be taken for a scheme.
  if (uri.scheme == nullptr && path.substr(0, path.find('/')).find(':') != std::string_view::npos)
    return false;
  if (!assign(uri.path, path)) return false;
  if (rest.starts_with('?')) {
    rest.remove_prefix(1);
    if (!assign(uri.query, take(Part::query, rest, uri.flags))) return false;
  }
  if (rest.starts_with('#')) {
    rest.remove_prefix(1);
    if (!assign(uri.fragment, take(Part::fragment, rest, uri.flags))) return false;
  }
  return rest.empty();
}

/// Appends text to memory of a given size, as far as it fits.
class Joined {
 public:
  Joined(char* to, std::size_t size) noexcept : to_(to), size_(size) {}

  Joined& operator<<(std::string_view text) noexcept {
    // One byte is for the terminator.
    if (fits_ && text.size() < size_ - used_) {
      text.copy(to_ + used_, text.size());
      used_ += text.size();
    } else {
      fits_ = false;
    }
    return *this;
  }

  char* finish() noexcept {
    if (!fits_) return nullptr;
    to_[used_] = '\0';
    return to_;
  }

 private:
  char* to_;
  std::size_t size_;
  std::size_t used_ = 0;
  bool fits_ = true;
};

}  // namespace

evhttp_uri* evhttp_uri_new() {
  auto* const uri = static_cast<evhttp_uri*>(event_mm_calloc_(1, sizeof(evhttp_uri)));
  if (uri != nullptr) uri->port = -1;
  return uri;
}

void evhttp_uri_free(evhttp_uri* uri) {
  for (char* const member :
       {uri->scheme, uri->userinfo, uri->host, uri->path, uri->query, uri->fragment}) {
    if (member != nullptr) event_mm_free_(member);
  }
  event_mm_free_(uri);
}

evhttp_uri* evhttp_uri_parse_with_flags(const char* source_uri, unsigned flags) {
  evhttp_uri* const uri = evhttp_uri_new();
  if (uri == nullptr) {
    event_warn("evhttp_uri: no memory");
    return nullptr;
  }
  uri->flags = flags;
  if (parse(*uri, source_uri)) return uri;
  evhttp_uri_free(uri);
  return nullptr;
}
evhttp_uri* evhttp_uri_parse(const char* source_uri) {
  return evhttp_uri_parse_with_flags(source_uri, 0);
}

evhttp_uri* tambour::libevent::parse_authority_form(const char* target) noexcept {
  evhttp_uri* const uri = evhttp_uri_new();
  if (uri == nullptr) return nullptr;
  if (parse_authority(*uri, target) && assign(uri->path, "")) return uri;
  evhttp_uri_free(uri);
  return nullptr;
}

char* evhttp_uri_join(evhttp_uri* uri, char* buf, std::size_t limit) {
  if (uri == nullptr || buf == nullptr || limit == 0) return nullptr;
  Joined joined(buf, limit);
  if (uri->scheme != nullptr) joined << uri->scheme << ":";
  if (uri->host != nullptr) {
    joined << "//";
    if (uri->userinfo != nullptr) joined << uri->userinfo << "@";
    joined << uri->host;
    if (uri->port >= 0) {
      char port[16];
      evutil_snprintf(port, sizeof port, ":%d", uri->port);
      joined << port;
    }
    if (uri->path != nullptr && uri->path[0] != '/' && uri->path[0] != '\0') return nullptr;
  }
  if (uri->path != nullptr) joined << uri->path;
  if (uri->query != nullptr) joined << "?" << uri->query;
  if (uri->fragment != nullptr) joined << "#" << uri->fragment;
  return joined.finish();
}

const char* evhttp_uri_get_scheme(const evhttp_uri* uri) { return uri->scheme; }
const char* evhttp_uri_get_userinfo(const evhttp_uri* uri) { return uri->userinfo; }
const char* evhttp_uri_get_host(const evhttp_uri* uri) { return uri->host; }
int evhttp_uri_get_port(const evhttp_uri* uri) { return uri->port; }
const char* evhttp_uri_get_path(const evhttp_uri* uri) { return uri->path; }
const char* evhttp_uri_get_query(const evhttp_uri* uri) { return uri->query; }
const char* evhttp_uri_get_fragment(const evhttp_uri* uri) { return uri->fragment; }

void evhttp_uri_set_flags(evhttp_uri* uri, unsigned flags) { uri->flags = flags; }
int evhttp_uri_set_scheme(evhttp_uri* uri, const char* scheme) {
  return scheme == nullptr || is_scheme(scheme) ? set(uri->scheme, scheme) : -1;
}
int evhttp_uri_set_userinfo(evhttp_uri* uri, const char* userinfo) {
  return userinfo == nullptr || consists_of(userinfo, ":") ? set(uri->userinfo, userinfo) : -1;
}
int evhttp_uri_set_host(evhttp_uri* uri, const char* host) {
  return host == nullptr || is_host(host) ? set(uri->host, host) : -1;
}
int evhttp_uri_set_port(evhttp_uri* uri, int port) {
  if (port < -1) return -1;
  uri->port = port;
  return 0;
}
int evhttp_uri_set_path(evhttp_uri* uri, const char* path) {
  return is_part(Part::path, path, uri->flags) ? set(uri->path, path) : -1;
}
int evhttp_uri_set_query(evhttp_uri* uri, const char* query) {
  return is_part(Part::query, query, uri->flags) ? set(uri->query, query) : -1;
}
int evhttp_uri_set_fragment(evhttp_uri* uri, const char* fragment) {
  return is_part(Part::fragment, fragment, uri->flags) ? set(uri->fragment, fragment) : -1;
}
