// Writes the heads of requests and responses.
//
// What libevent adds to the list of output fields is written without being added, so that a lack of
// memory cannot remove the end of a body from its message.

#include <sys/queue.h>

#include <charconv>
#include <cstring>
#include <ctime>
#include <string_view>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>

#include "libevent/event/core.h"
#include "libevent/http/connection.h"
#include "libevent/http/http_text.h"
#include "libevent/http/server.h"

namespace tambour::libevent {
namespace {

/// Writes a text into contiguous space of an evbuffer.
class HeadText {
 public:
  HeadText(evbuffer* to, std::size_t size_max) noexcept : to_(to) {
    if (evbuffer_reserve_space(to, static_cast<ev_ssize_t>(size_max), &space_, 1) < 1)
      space_.iov_base = nullptr;
  }

  [[nodiscard]] bool has_space() const noexcept { return space_.iov_base != nullptr; }

  HeadText& operator<<(std::string_view text) noexcept {
    text.copy(static_cast<char*>(space_.iov_base) + size_, text.size());
    size_ += text.size();
    return *this;
  }
  HeadText& operator<<(std::size_t number) noexcept {
    char digits[number_size];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }
  void add_field(std::string_view name, std::string_view value) noexcept {
    *this << name << ": " << value << "\r\n";
  }

  [[nodiscard]] bool commit() noexcept {
    space_.iov_len = size_;
    return evbuffer_commit_space(to_, &space_, 1) == 0;
  }

  static constexpr std::size_t number_size = 20;

 private:
  evbuffer* to_;
  evbuffer_iovec space_{};
  std::size_t size_ = 0;
};

std::size_t size_of(const evkeyvalq& fields) noexcept {
  constexpr std::size_t separators = 4;
  std::size_t size = 0;
  evkeyval* field = nullptr;
  TAILQ_FOREACH(field, &fields, next)
  size += std::strlen(field->key) + std::strlen(field->value) + separators;
  return size;
}

std::string_view text_or_empty(const char* text) noexcept {
  return text != nullptr ? std::string_view(text) : std::string_view();
}

/// Formatted once per second.
std::string_view current_date() noexcept {
  struct Date {
    std::time_t second;
    int size;
    char text[64];
  };
  static thread_local Date date{-1, 0, {}};
  const std::time_t now = std::time(nullptr);
  if (now != date.second) {
    date.second = now;
    date.size = evutil_date_rfc1123(date.text, sizeof date.text, nullptr);
  }
  return {date.text, static_cast<std::size_t>(date.size)};
}

void add_version(HeadText& head, const evhttp_request& message) noexcept {
  head << "HTTP/" << static_cast<std::size_t>(message.major) << "."
       << static_cast<std::size_t>(message.minor);
}

// More than the fixed parts of a head.
constexpr std::size_t fixed_size = 512;

bool move_body(evbuffer* output, evhttp_request& message) noexcept {
  return evbuffer_get_length(message.output_buffer) == 0 ||
         evbuffer_add_buffer(output, message.output_buffer) == 0;
}

/// The fields that the program has not set itself.
struct Added {
  bool date = false;
  bool keep_alive = false;
  bool length = false;
  const char* type = nullptr;
  bool close = false;  ///< Replaces what the program has set.
};

Added added_to(const evhttp_connection& connection, const evhttp_request& response,
               BodyEnd end) noexcept {
  const evkeyvalq& fields = *response.output_headers;
  const bool is_1 = response.major == 1;
  const bool keep_alive = asks_to_keep_alive(*response.input_headers);
  const bool body = has_body(response);
  Added added;
  added.date = is_1 && response.minor >= 1 && evhttp_find_header(&fields, "Date") == nullptr;
  added.keep_alive = is_1 && response.minor == 0 && keep_alive && end != BodyEnd::close;
  added.length = is_1 && (response.minor >= 1 || keep_alive) && body && end == BodyEnd::length &&
                 evhttp_find_header(&fields, "Transfer-Encoding") == nullptr &&
                 evhttp_find_header(&fields, "Content-Length") == nullptr;
  if (body && evhttp_find_header(&fields, "Content-Type") == nullptr &&
      connection.server != nullptr)
    added.type = connection.server->default_content_type;
  added.close = asks_to_close(response, *response.input_headers);
  return added;
}

/// Without the first fields about the connection, if the response closes it.
void add_fields(HeadText& head, const evkeyvalq& fields, bool closes) noexcept {
  bool skips[] = {closes, closes};
  constexpr const char* skipped[] = {"Connection", "Proxy-Connection"};
  evkeyval* field = nullptr;
  TAILQ_FOREACH(field, &fields, next) {
    bool skip = false;
    for (std::size_t i = 0; i < std::size(skips) && !skip; ++i) {
      skip = skips[i] && evutil_ascii_strcasecmp(field->key, skipped[i]) == 0;
      skips[i] = skips[i] && !skip;
    }
    if (!skip) head.add_field(field->key, field->value);
  }
}

}  // namespace

bool write_request(evhttp_connection& connection, evhttp_request& request) noexcept {
  evhttp_remove_header(request.output_headers, "Proxy-Connection");
  const http::Method* const method = method_of(request);
  const std::string_view name = method != nullptr ? method->name() : "NULL";
  const evkeyvalq& fields = *request.output_headers;
  const std::string_view target = text_or_empty(request.uri);
  HeadText head(connection.output(), fixed_size + target.size() + size_of(fields));
  if (!head.has_space()) return false;
  head << name << " " << target << " ";
  add_version(head, request);
  head << "\r\n";
  add_fields(head, fields, false);
  const std::size_t size = evbuffer_get_length(request.output_buffer);
  const unsigned type = type_of(request);
  const bool announces = type == EVHTTP_REQ_POST || type == EVHTTP_REQ_PUT || size != 0;
  if (announces && evhttp_find_header(&fields, "Content-Length") == nullptr &&
      evhttp_find_header(&fields, "Transfer-Encoding") == nullptr)
    head << "Content-Length: " << size << "\r\n";
  head << "\r\n";
  if (!head.commit()) return false;
  if (expectation(request, fields) == Expect::to_continue) return true;
  return move_body(connection.output(), request);
}

bool write_response(evhttp_connection& connection, evhttp_request& response, BodyEnd end) noexcept {
  const evkeyvalq& fields = *response.output_headers;
  const Added added = added_to(connection, response, end);
  const std::string_view reason = text_or_empty(response.response_code_line);
  const std::string_view type = text_or_empty(added.type);
  HeadText head(connection.output(), fixed_size + reason.size() + type.size() + size_of(fields));
  if (!head.has_space()) return false;
  add_version(head, response);
  char code[HeadText::number_size];
  const auto code_end = std::to_chars(code, code + sizeof code, response.response_code).ptr;
  head << " " << std::string_view(code, static_cast<std::size_t>(code_end - code)) << " " << reason
       << "\r\n";
  add_fields(head, fields, added.close);
  if (end == BodyEnd::chunked) head.add_field("Transfer-Encoding", "chunked");
  if (added.date) head.add_field("Date", current_date());
  if (added.keep_alive) head.add_field("Connection", "keep-alive");
  if (added.length)
    head << "Content-Length: " << evbuffer_get_length(response.output_buffer) << "\r\n";
  if (added.type != nullptr) head.add_field("Content-Type", type);
  if (added.close && (response.flags & EVHTTP_PROXY_REQUEST) == 0)
    head.add_field("Connection", "close");
  head << "\r\n";
  if (!head.commit()) return false;
  // A body that the client does not expect would be taken for the next response.
  if (!has_body(response))
    return evbuffer_drain(response.output_buffer, evbuffer_get_length(response.output_buffer)) == 0;
  return move_body(connection.output(), response);
}

}  // namespace tambour::libevent
