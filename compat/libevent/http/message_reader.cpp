// Passes lines and bodies to the parsers of layer http_message, and stores what they find in an
// evhttp_request.
#include "libevent/http/message_reader.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <expected>
#include <string>

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>

#include "http_message/characters.h"
#include "libevent/event/core.h"
#include "libevent/http/connection.h"
#include "libevent/http/http_text.h"

using tambour::http::detail::h1::HeadKind;

namespace tambour::libevent {
namespace {

unsigned type_of(const http::Method& method) noexcept {
  struct Known {
    const http::Method* method;
    evhttp_cmd_type type;
  };
  static constexpr Known all[] = {
      {&http::Method::get, EVHTTP_REQ_GET},        {&http::Method::post, EVHTTP_REQ_POST},
      {&http::Method::head, EVHTTP_REQ_HEAD},      {&http::Method::put, EVHTTP_REQ_PUT},
      {&http::Method::delete_, EVHTTP_REQ_DELETE}, {&http::Method::options, EVHTTP_REQ_OPTIONS},
      {&http::Method::trace, EVHTTP_REQ_TRACE},    {&http::Method::connect, EVHTTP_REQ_CONNECT},
      {&http::Method::patch, EVHTTP_REQ_PATCH}};
  for (const Known& known : all)
    if (*known.method == method) return known.type;
  return unknown_type;
}

/// A target that is stored as a C string, and written to logs and to other servers.
bool is_target(std::string_view text) noexcept {
  return std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
}

/// The digit after "HTTP/1.", which the parser does not keep.
char minor_version(std::string_view text, HeadKind kind) noexcept {
  std::size_t at = text.starts_with("\r\n") ? 2 : 0;
  if (kind == HeadKind::request) at = text.find("\r\n", at) - std::string_view("HTTP/1.1").size();
  return static_cast<char>(text[at + std::string_view("HTTP/1.").size()] - '0');
}

ReadResult result_of(const Error& error) noexcept {
  const bool is_limit =
      error == http::ErrorCode::start_line_too_long || error == http::ErrorCode::fields_too_large ||
      error == http::ErrorCode::too_many_fields || error == http::ErrorCode::body_too_large;
  return is_limit ? ReadResult::too_long : ReadResult::invalid;
}

}  // namespace

void MessageReader::restart(evhttp_request_kind kind, std::size_t head_bytes_max,
                            std::uint64_t body_bytes_max) noexcept {
  is_request_ = kind == EVHTTP_REQUEST;
  head_bytes_max_ = head_bytes_max == SIZE_MAX ? head_bytes_default
                                               : std::min(head_bytes_max, http::Fields::bytes_max);
  limits_.http_1.start_line_bytes_max = limits_.fields_bytes_max = head_bytes_max_;
  limits_.trailers_bytes_max = head_bytes_max_;
  limits_.fields_max = limits_.trailers_max = fields_max;
  limits_.body_bytes_max = body_bytes_max;
  // A server must read a request as strictly as any front end; a client meets odd servers.
  const auto mode = is_request_ ? http::detail::h1::ParsingMode::strict
                                : http::detail::h1::ParsingMode::lenient_response;
  lines_.set_mode(mode);
  chunks_.set_mode(mode);
  lines_.restart(is_request_ ? HeadKind::request : HeadKind::response);
  chunks_.restart();
  framing_ = {};
  trimmed_ = 0;
  headers().clear();
}

http::Fields& MessageReader::headers() noexcept {
  return is_request_ ? request_.fields : response_.fields;
}

MessageReader::Lines MessageReader::parse_lines(std::string_view text) {
  const auto size = lines_.parse(text, headers());
  if (!size) return {result_of(size.error()), {}};
  if (!*size) return {};
  return {ReadResult::complete, text.substr(0, **size)};
}

/// Makes contiguous what the head needs, but not the body that may follow it.
MessageReader::Lines MessageReader::read_lines(evbuffer* input) {
  const std::size_t length = evbuffer_get_length(input);
  std::size_t size = evbuffer_get_contiguous_space(input);
  while (size != 0) {
    const auto* const bytes =
        reinterpret_cast<const char*>(evbuffer_pullup(input, static_cast<ev_ssize_t>(size)));
    if (bytes == nullptr) return {ReadResult::no_memory, {}};
    const Lines lines = parse_lines({bytes, size});
    if (lines.result != ReadResult::incomplete || size == length) return lines;
    size = std::min(length, 2 * size);
  }
  return {};
}

/// RFC 9112, section 3, permits to ignore spaces at the end of a request line, as libevent does.
/// Returns whether there were any, and removes them.
bool MessageReader::trim_request_line(evbuffer* input) {
  const evbuffer_ptr end = evbuffer_search_eol(input, nullptr, nullptr, EVBUFFER_EOL_CRLF_STRICT);
  if (end.pos <= 0 || static_cast<std::size_t>(end.pos) > head_bytes_max_) return false;
  std::string line(static_cast<std::size_t>(end.pos), '\0');
  evbuffer_copyout(input, line.data(), line.size());
  const std::size_t size = line.find_last_not_of(' ') + 1;
  if (size == line.size()) return false;
  trimmed_ = line.size() - size;
  evbuffer_drain(input, line.size());
  return evbuffer_prepend(input, line.data(), size) == 0;
}

bool MessageReader::check_framing(const http::Method& method) noexcept {
  const auto framing = is_request_ ? http::detail::h1::framing_of(request_)
                                   : http::detail::h1::framing_of(response_, method, lines_.mode());
  if (framing) framing_ = *framing;
  return framing.has_value();
}

bool MessageReader::store_start_line(std::string_view text, evhttp_request& message) noexcept {
  const std::string_view rest = lines_.rest_of_start_line(text);
  char*& stored = is_request_ ? message.uri : message.response_code_line;
  char* const copy = copy_text(rest);
  if (copy == nullptr) return false;
  if (stored != nullptr) event_mm_free_(stored);
  stored = copy;
  message.major = 1;
  message.minor = minor_version(text, is_request_ ? HeadKind::request : HeadKind::response);
  if (is_request_) {
    const unsigned type = type_of(lines_.method());
    std::memcpy(&message.type, &type, sizeof type);
  } else {
    message.response_code = static_cast<int>(lines_.status());
  }
  return true;
}

bool MessageReader::store_fields(evhttp_request& message) noexcept {
  return std::ranges::all_of(headers(), [&message](const http::Field& field) {
    return append_field(*message.input_headers, field.name, field.value);
  });
}

ReadResult MessageReader::store(std::string_view text, evhttp_request& message,
                                const http::Method& method) noexcept {
  message.headers_size = lines_.line_bytes() + trimmed_;
  if (message.headers_size > head_bytes_max_) return ReadResult::too_long;
  request_.version = response_.version = lines_.version();
  response_.status = lines_.status();
  if (!check_framing(method)) return ReadResult::invalid;
  if (is_request_ && !is_target(lines_.rest_of_start_line(text))) return ReadResult::invalid;
  // A front end may have chosen the other one.
  if (is_request_ && request_.fields.count("Host") > 1) return ReadResult::invalid;
  if (!store_start_line(text, message) || !store_fields(message)) return ReadResult::no_memory;
  return ReadResult::complete;
}

ReadResult MessageReader::read_head(evbuffer* input, evhttp_request& message,
                                    const http::Method& method) noexcept {
  try {
    Lines lines = read_lines(input);
    if (lines.result == ReadResult::invalid && is_request_ && trim_request_line(input)) {
      lines_.restart(HeadKind::request);
      headers().clear();
      lines = read_lines(input);
    }
    if (lines.result != ReadResult::complete) return lines.result;
    const ReadResult stored = store(lines.text, message, method);
    headers().clear();
    if (stored == ReadResult::complete) evbuffer_drain(input, lines.text.size());
    return stored;
  } catch (const std::exception&) {
    return ReadResult::no_memory;
  }
}

ReadResult MessageReader::read_chunk(evbuffer* input, evbuffer* body) noexcept {
  while (evbuffer_get_length(input) != 0) {
    evbuffer_iovec first{};
    evbuffer_peek(input, -1, nullptr, &first, 1);
    const auto part = chunks_.parse({static_cast<const char*>(first.iov_base), first.iov_len},
                                    static_cast<std::size_t>(INT_MAX));
    if (!part) return result_of(part.error());
    evbuffer_drain(input, part->framing);
    const auto size = static_cast<int>(part->data);
    if (size != 0 && evbuffer_remove_buffer(input, body, part->data) != size)
      return ReadResult::no_memory;
    if (chunks_.is_complete()) {
      lines_.restart(HeadKind::trailers);
      return ReadResult::complete;
    }
    if (size != 0 && chunks_.data_left() == 0) return ReadResult::chunk;
  }
  return ReadResult::incomplete;
}

ReadResult MessageReader::read_trailers(evbuffer* input, evhttp_request& message) noexcept {
  try {
    const Lines lines = read_lines(input);
    if (lines.result != ReadResult::incomplete) headers().clear();
    if (lines.result != ReadResult::complete) return lines.result;
    message.headers_size += lines_.line_bytes();
    evbuffer_drain(input, lines.text.size());
    return message.headers_size > head_bytes_max_ ? ReadResult::too_long : ReadResult::complete;
  } catch (const std::exception&) {
    return ReadResult::no_memory;
  }
}

ReadResult MessageReader::parse_start_line(std::string_view head,
                                           evhttp_request& message) noexcept {
  try {
    const Lines lines = parse_lines(head);
    if (lines.result != ReadResult::complete) return lines.result;
    return store_start_line(lines.text, message) ? ReadResult::complete : ReadResult::no_memory;
  } catch (const std::exception&) {
    return ReadResult::no_memory;
  }
}

ReadResult MessageReader::parse_fields(std::string_view head, evhttp_request& message) noexcept {
  try {
    const Lines lines = parse_lines(head);
    if (lines.result != ReadResult::complete) return lines.result;
    return store_fields(message) ? ReadResult::complete : ReadResult::no_memory;
  } catch (const std::exception&) {
    return ReadResult::no_memory;
  }
}

}  // namespace tambour::libevent
