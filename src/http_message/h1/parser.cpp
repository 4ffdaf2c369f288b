// MessageParser, RequestParser and ResponseParser: the sequence of head, body and trailers on one
// connection.
#include "http_message/h1/parser.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <tambour/net/stream_error.h>

#include "http_message/failure.h"
#include "http_message/request_target.h"

namespace tambour::http::detail::h1 {
namespace {

constexpr std::size_t small_piece = 1024;

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Frees the memory of a text if it is large. Assigning an empty text would keep it.
void release(std::string& text) noexcept {
  constexpr std::size_t kept_bytes_max = 512;
  if (text.capacity() > kept_bytes_max) std::string().swap(text);
}

}  // namespace

std::unexpected<Error> MessageParser::fail(const Error& error) noexcept {
  error_ = error;
  return std::unexpected(error);
}

Result<std::string_view> MessageParser::parse_text(std::string_view text, Fields& fields) {
  if (error_) return std::unexpected(error_);
  const auto size = lines_.parse(text, fields);
  if (!size) return fail(size.error());
  return text.substr(0, size->value_or(0));
}

Result<std::string_view> MessageParser::parse_lines(Buffer& input, Fields& fields) {
  std::string_view text = text_of(input.front());
  while (true) {
    const auto lines = parse_text(text, fields);
    if (!lines || !lines->empty() || text.size() == input.size()) return lines;
    // The head continues in another block. Only as much as necessary is made contiguous, because
    // the buffer may also hold a long body.
    text = text_of(input.peek(std::max(2 * text.size(), std::size_t{1024})));
  }
}

void MessageParser::begin_body(const BodyFraming& framing, bool persistent) noexcept {
  framing_ = framing;
  state_ = framing.kind == BodyKind::none ? State::complete : State::body;
  persistent_ =
      persistent && framing.kind != BodyKind::until_close && framing.kind != BodyKind::tunnel;
}

void MessageParser::restart(HeadKind kind) noexcept {
  limits_.body_bytes_max = body_bytes_max_;
  lines_.restart(kind);
  if (framing_.kind == BodyKind::chunked) {
    chunks_.restart();
    detail::FieldWriter::release(trailers_);
  }
  framing_ = {};
  body_bytes_ = 0;
  state_ = State::head;
  persistent_ = false;
}

Result<std::size_t> MessageParser::read_body(Buffer& input, Buffer& output, std::size_t bytes_max) {
  if (error_) return std::unexpected(error_);
  if (state_ == State::body && framing_.kind == BodyKind::chunked)
    return read_chunks(input, output, bytes_max);
  if (state_ == State::body && framing_.kind != BodyKind::tunnel)
    return read_plain(input, output, bytes_max);
  if (state_ == State::trailers) {
    if (auto read = read_trailers(input); !read) return std::unexpected(read.error());
  }
  return 0;
}

Result<std::size_t> MessageParser::read_plain(Buffer& input, Buffer& output,
                                              std::size_t bytes_max) {
  const bool has_length = framing_.kind == BodyKind::length;
  if (has_length && framing_.length > limits_.body_bytes_max)
    return fail(http::ErrorCode::body_too_large);
  const std::uint64_t left = (has_length ? framing_.length : limits_.body_bytes_max) - body_bytes_;
  const auto size =
      static_cast<std::size_t>(std::min<std::uint64_t>({left, bytes_max, input.size()}));
  if (left == 0 && !input.empty()) return fail(http::ErrorCode::body_too_large);
  output.append(input.take(size));
  body_bytes_ += size;
  if (has_length && size == left) state_ = State::complete;
  return size;
}

Result<std::size_t> MessageParser::read_chunks(Buffer& input, Buffer& output,
                                               std::size_t bytes_max) {
  std::size_t total = 0;
  while (total < bytes_max && !input.empty()) {
    const auto part = chunks_.parse(text_of(input.front()), bytes_max - total);
    if (!part) return fail(part.error());
    input.consume(part->framing);
    // Small pieces are copied, because each of them would otherwise be a block of its own.
    if (part->data <= small_piece) {
      output.append(input.front().first(part->data));
      input.consume(part->data);
    } else {
      output.append(input.take(part->data));
    }
    total += part->data;
    if (!chunks_.is_complete()) continue;
    state_ = State::trailers;
    lines_.restart(HeadKind::trailers);
    if (auto read = read_trailers(input); !read) return std::unexpected(read.error());
    break;
  }
  return total;
}

Result<> MessageParser::read_trailers(Buffer& input) {
  const auto text = parse_lines(input, trailers_);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return {};
  input.consume(text->size());
  state_ = State::complete;
  return {};
}

Result<> MessageParser::end_input(const Buffer& input) {
  if (error_) return std::unexpected(error_);
  if (state_ == State::complete) return {};
  if (state_ == State::head) {
    // An empty line before a request is not a part of it.
    const bool has_begun = !input.empty() && !(input == "\r\n");
    return fail(has_begun ? StreamError::truncated : StreamError::eof);
  }
  if (framing_.kind == BodyKind::tunnel) return fail(StreamError::eof);
  if (framing_.kind != BodyKind::until_close) return fail(StreamError::truncated);
  state_ = State::complete;
  return {};
}

Result<bool> RequestParser::parse_head(Buffer& input) {
  const auto text = parse_lines(input, head_.fields);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return false;
  if (auto begun = begin_message(*text); !begun) return std::unexpected(begun.error());
  input.consume(text->size());
  return true;
}

/// An error is kept, and returned by the other function.
std::size_t RequestParser::parse_usual_head(std::string_view input) {
  const std::size_t size = parse_plain(input, head_.fields);
  return size > 0 && begin_message(input.substr(0, size)) ? size : 0;
}

Result<std::size_t> RequestParser::parse_head(std::string_view input) {
  const auto text = parse_text(input, head_.fields);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return 0;
  if (auto begun = begin_message(*text); !begun) return std::unexpected(begun.error());
  return text->size();
}

/// The lines of the head are valid.
[[gnu::always_inline]] inline Result<> RequestParser::begin_message(std::string_view text) {
  head_.method = lines().method();
  head_.version = lines().version();
  const std::string_view target = lines().rest_of_start_line(text);
  const bool is_plain = lines().has_plain_target() && head_.method != Method::connect;
  const std::string_view host = lines().plain_host(text);
  if (is_plain && !host.empty()) {
    set_plain_target(head_, target, host);
  } else if (auto set = set_target(head_, target); !set) {
    return fail(set.error());
  }
  if (is_plain && !lines().may_have_framing()) {
    begin_body({}, true);
    return {};
  }
  const auto framing = framing_of(head_);
  if (!framing) return fail(framing.error());
  begin_body(*framing, h1::is_persistent(head_.version, head_.fields));
  return {};
}

void RequestParser::keep_start_line(Buffer& input) {
  head_ = {};
  head_.target.clear();
  if (!lines().has_start_line()) return;
  const std::string_view text = text_of(input.peek(lines().start_line_end()));
  head_.method = lines().method();
  head_.version = lines().version();
  head_.target = lines().rest_of_start_line(text);
}

void RequestParser::restart() noexcept {
  MessageParser::restart(HeadKind::request);
  detail::FieldWriter::release(head_.fields);
  release(head_.target);
  release(head_.authority);
}

Result<bool> ResponseParser::parse_head(Buffer& input, const Method& method) {
  const auto text = parse_lines(input, head_.fields);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return false;
  head_.status = lines().status();
  head_.version = lines().version();
  head_.reason = lines().rest_of_start_line(*text);
  const auto framing = framing_of(head_, method, lines().mode());
  if (!framing) return fail(framing.error());
  begin_body(*framing, h1::is_persistent(head_.version, head_.fields));
  input.consume(text->size());
  return true;
}

void ResponseParser::restart() noexcept {
  MessageParser::restart(HeadKind::response);
  detail::FieldWriter::release(head_.fields);
  release(head_.reason);
}

}  // namespace tambour::http::detail::h1
