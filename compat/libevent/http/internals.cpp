// Functions of libevent's http-internal.h, which its own tests use: they parse a head in two steps.

#include <sys/queue.h>

#include <exception>
#include <string>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>

#include "http_message/characters.h"
#include "libevent/http/connection.h"
#include "libevent/http/message_reader.h"

using tambour::libevent::MessageReader;
using tambour::libevent::ReadResult;

namespace {

constexpr int all_data_read = 1;
constexpr int more_data_expected = 0;
constexpr int data_corrupted = -1;
constexpr int data_too_long = -3;

int status_of(ReadResult result) noexcept {
  switch (result) {
    case ReadResult::complete:
      return all_data_read;
    case ReadResult::incomplete:
      return more_data_expected;
    case ReadResult::too_long:
      return data_too_long;
    default:
      return data_corrupted;
  }
}

std::size_t head_bytes_max(const evhttp_request& request) noexcept {
  return request.evcon != nullptr ? request.evcon->head_bytes_max : SIZE_MAX;
}

/// The lines up to the end of the first one, or of the head. Empty if it is not there yet.
std::string take_lines(evbuffer* buffer, bool only_first) {
  std::string lines;
  evbuffer_ptr begin{};
  evbuffer_ptr_set(buffer, &begin, 0, EVBUFFER_PTR_SET);
  for (bool is_end = false; !is_end;) {
    std::size_t line_end = 0;
    const evbuffer_ptr at =
        evbuffer_search_eol(buffer, &begin, &line_end, EVBUFFER_EOL_CRLF_STRICT);
    if (at.pos < 0) return {};
    is_end = only_first || at.pos == begin.pos;
    evbuffer_ptr_set(buffer, &begin, static_cast<std::size_t>(at.pos) + line_end, EVBUFFER_PTR_SET);
  }
  lines.resize(static_cast<std::size_t>(begin.pos));
  evbuffer_remove(buffer, lines.data(), lines.size());
  return lines;
}

enum class Codings : int { invalid, end_in_chunked, not_chunked };

bool is_chunked(std::string_view coding) noexcept {
  const std::string_view name = tambour::http::trim(coding);
  return tambour::http::equal_ignoring_case(name.substr(0, name.find_first_of(" \t;")), "chunked");
}

}  // namespace

extern "C" {

int evhttp_parse_firstline_(evhttp_request* req, evbuffer* buffer) {
  try {
    const std::string line = take_lines(buffer, true);
    if (line.empty()) {
      const bool is_too_long = evbuffer_get_length(buffer) > head_bytes_max(*req);
      return is_too_long ? data_too_long : more_data_expected;
    }
    req->headers_size = line.size() - 2;
    MessageReader reader;
    reader.restart(req->kind, head_bytes_max(*req), UINT64_MAX);
    return status_of(reader.parse_start_line(line + "\r\n", *req));
  } catch (const std::exception&) {
    return data_corrupted;
  }
}

int evhttp_parse_headers_(evhttp_request* req, evbuffer* buffer) {
  try {
    const std::string lines = take_lines(buffer, false);
    if (lines.empty()) return more_data_expected;
    MessageReader reader;
    reader.restart(EVHTTP_REQUEST, head_bytes_max(*req), UINT64_MAX);
    return status_of(reader.parse_fields("GET / HTTP/1.1\r\n" + lines, *req));
  } catch (const std::exception&) {
    return data_corrupted;
  }
}

int evhttp_str_is_chunked_(const char* value, const char* eos) {
  const std::string_view text =
      eos != nullptr ? std::string_view(value, static_cast<std::size_t>(eos - value)) : value;
  return is_chunked(text) ? 1 : 0;
}

int evhttp_check_transfer_encoding_(const char* value) {
  std::string_view left = value;
  for (std::size_t comma = left.find(','); comma != std::string_view::npos;
       comma = left.find(',')) {
    if (is_chunked(left.substr(0, comma))) return static_cast<int>(Codings::invalid);
    left.remove_prefix(comma + 1);
  }
  return static_cast<int>(is_chunked(left) ? Codings::end_in_chunked : Codings::not_chunked);
}

}  // extern "C"
