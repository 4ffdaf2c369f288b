// Lists of fields, percent-encoding, queries and escaping of event2/http.h.

#include "libevent/http/http_text.h"

#include <sys/queue.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <string_view>

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>

#include "http_message/characters.h"
#include "libevent/event/core.h"
#include "libevent/http/http_characters.h"

using tambour::libevent::append_field;
using tambour::libevent::is_hex_digit;
using tambour::libevent::is_unreserved;

namespace {

/// With a security patch of Debian, a value cannot continue on another line.
bool has_line_end(const char* text) noexcept { return std::strpbrk(text, "\r\n") != nullptr; }

evkeyval* find(const evkeyvalq* list, const char* key) noexcept {
  evkeyval* field = nullptr;
  TAILQ_FOREACH(field, list, next) {
    if (evutil_ascii_strcasecmp(field->key, key) == 0) return field;
  }
  return nullptr;
}

void free_field(evkeyvalq* list, evkeyval* field) noexcept {
  TAILQ_REMOVE(list, field, next);
  event_mm_free_(field->key);
  event_mm_free_(field->value);
  event_mm_free_(field);
}

/// "NAME=VALUE", of which only the value is percent-encoded. Modifies the text.
bool append_parameter(evkeyvalq* list, char* text) noexcept {
  char* const equals = std::strchr(text, '=');
  if (equals == nullptr || equals == text) return false;
  *equals = '\0';
  char* const value = equals + 1;
  // In place, because the result is not longer.
  evhttp_decode_uri_internal(value, std::strlen(value), value, 1);
  return append_field(*list, text, value);
}

int parse_query(const char* query, evkeyvalq* list) noexcept {
  if (query == nullptr || *query == '\0') return 0;
  char* const copy = event_mm_strdup_(query);
  if (copy == nullptr) {
    event_warn("evhttp_parse_query: no memory");
    return -1;
  }
  bool is_valid = true;
  for (char* next = copy; is_valid && next != nullptr && *next != '\0';) {
    char* const parameter = next;
    char* const end = std::strchr(next, '&');
    next = end != nullptr ? end + 1 : nullptr;
    if (end != nullptr) *end = '\0';
    is_valid = append_parameter(list, parameter);
  }
  event_mm_free_(copy);
  if (is_valid) return 0;
  evhttp_clear_headers(list);
  return -1;
}

std::string_view escaped(const char& c) noexcept {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#039;";
    case '&':
      return "&amp;";
    default:
      return {&c, 1};
  }
}

}  // namespace

namespace tambour::libevent {

char* copy_text(std::string_view text) noexcept {
  auto* const copy = static_cast<char*>(event_mm_malloc_(text.size() + 1));
  if (copy == nullptr) {
    event_warn("evhttp: no memory");
    return nullptr;
  }
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return copy;
}

bool append_field(evkeyvalq& list, std::string_view name, std::string_view value) noexcept {
  auto* const field = static_cast<evkeyval*>(event_mm_calloc_(1, sizeof(evkeyval)));
  if (field == nullptr) return false;
  field->key = copy_text(name);
  field->value = copy_text(value);
  if (field->key == nullptr || field->value == nullptr) {
    if (field->key != nullptr) event_mm_free_(field->key);
    if (field->value != nullptr) event_mm_free_(field->value);
    event_mm_free_(field);
    return false;
  }
  TAILQ_INSERT_TAIL(&list, field, next);
  return true;
}

bool has_token(const evkeyvalq& list, const char* name, std::string_view token) noexcept {
  evkeyval* field = nullptr;
  TAILQ_FOREACH(field, &list, next) {
    if (evutil_ascii_strcasecmp(field->key, name) != 0) continue;
    std::string_view left = field->value;
    for (bool is_last = false; !is_last;) {
      const std::size_t comma = left.find(',');
      is_last = comma == std::string_view::npos;
      if (http::equal_ignoring_case(http::trim(left.substr(0, comma)), token)) return true;
      if (!is_last) left.remove_prefix(comma + 1);
    }
  }
  return false;
}

}  // namespace tambour::libevent

const char* evhttp_find_header(const evkeyvalq* headers, const char* key) {
  const evkeyval* const field = find(headers, key);
  return field != nullptr ? field->value : nullptr;
}

int evhttp_remove_header(evkeyvalq* headers, const char* key) {
  evkeyval* const field = find(headers, key);
  if (field == nullptr) return -1;
  free_field(headers, field);
  return 0;
}

int evhttp_add_header(evkeyvalq* headers, const char* key, const char* value) {
  if (has_line_end(key) || has_line_end(value)) return -1;
  return append_field(*headers, key, value) ? 0 : -1;
}

void evhttp_clear_headers(evkeyvalq* headers) {
  while (evkeyval* const first = TAILQ_FIRST(headers)) free_field(headers, first);
}

char* evhttp_uriencode(const char* str, ev_ssize_t size, int space_to_plus) {
  const std::size_t length = size >= 0 ? static_cast<std::size_t>(size) : std::strlen(str);
  if (length > SSIZE_MAX / 3 - 1) return nullptr;
  const std::string_view text(str, length);
  std::size_t encoded = 0;
  for (const char c : text) encoded += is_unreserved(c) || (c == ' ' && space_to_plus != 0) ? 1 : 3;
  auto* const result = static_cast<char*>(event_mm_malloc_(encoded + 1));
  if (result == nullptr) return nullptr;
  char* end = result;
  for (const char c : text) {
    if (is_unreserved(c)) {
      *end++ = c;
    } else if (c == ' ' && space_to_plus != 0) {
      *end++ = '+';
    } else {
      constexpr const char* digits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      *end++ = '%';
      *end++ = digits[byte >> 4];
      *end++ = digits[byte & 0xf];
    }
  }
  *end = '\0';
  return result;
}
char* evhttp_encode_uri(const char* str) { return evhttp_uriencode(str, -1, 0); }

/// `decode_plus_ctl`: 1 decodes "+" to a space, a negative value does so after a question mark.
/// `ret` may be the same as `uri`.
int evhttp_decode_uri_internal(const char* uri, std::size_t length, char* ret,
                               int decode_plus_ctl) {
  bool decodes_plus = decode_plus_ctl == 1;
  int count = 0;
  for (std::size_t i = 0; i < length; ++i) {
    char c = uri[i];
    if (c == '?') {
      decodes_plus = decodes_plus || decode_plus_ctl < 0;
    } else if (c == '+' && decodes_plus) {
      c = ' ';
    } else if (c == '%' && i + 2 < length && is_hex_digit(uri[i + 1]) && is_hex_digit(uri[i + 2])) {
      c = static_cast<char>(tambour::detail::base::hex_value(uri[i + 1]) << 4 |
                            tambour::detail::base::hex_value(uri[i + 2]));
      i += 2;
    }
    ret[count++] = c;
  }
  ret[count] = '\0';
  return count;
}

char* evhttp_uridecode(const char* uri, int decode_plus, std::size_t* size_out) {
  const std::size_t length = std::strlen(uri);
  auto* const result = static_cast<char*>(event_mm_malloc_(length + 1));
  if (result == nullptr) {
    event_warn("evhttp_uridecode: no memory");
    return nullptr;
  }
  const int size = evhttp_decode_uri_internal(uri, length, result, decode_plus != 0 ? 1 : 0);
  if (size_out != nullptr) *size_out = static_cast<std::size_t>(size);
  return result;
}
char* evhttp_decode_uri(const char* uri) {
  const std::size_t length = std::strlen(uri);
  auto* const result = static_cast<char*>(event_mm_malloc_(length + 1));
  if (result == nullptr) {
    event_warn("evhttp_decode_uri: no memory");
    return nullptr;
  }
  evhttp_decode_uri_internal(uri, length, result, -1);
  return result;
}

int evhttp_parse_query(const char* uri, evkeyvalq* headers) {
  TAILQ_INIT(headers);
  evhttp_uri* const parsed = evhttp_uri_parse(uri);
  if (parsed == nullptr) return -1;
  const int result = parse_query(evhttp_uri_get_query(parsed), headers);
  evhttp_uri_free(parsed);
  return result;
}
int evhttp_parse_query_str(const char* uri, evkeyvalq* headers) {
  TAILQ_INIT(headers);
  return parse_query(uri, headers);
}

char* evhttp_htmlescape(const char* html) {
  if (html == nullptr) return nullptr;
  std::size_t size = 0;
  for (const char* c = html; *c != '\0'; ++c) size += escaped(*c).size();
  auto* const result = static_cast<char*>(event_mm_malloc_(size + 1));
  if (result == nullptr) {
    event_warn("evhttp_htmlescape: no memory");
    return nullptr;
  }
  char* end = result;
  for (const char* c = html; *c != '\0'; ++c) end += escaped(*c).copy(end, escaped(*c).size());
  *end = '\0';
  return result;
}
