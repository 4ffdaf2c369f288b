// MultipartParser: a state machine that finds boundaries which may be divided anywhere.
#include "http/forms/multipart_parser.h"

#include <algorithm>
#include <array>

#include <tambour/net/stream_error.h>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http::detail::forms {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::size_t boundary_size_max = 70;
constexpr std::size_t fields_max = 32;
/// Of preamble, padding and epilogue.
constexpr std::size_t ignored_bytes_max = std::size_t{64} * 1024;

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_padding(char c) noexcept { return c == ' ' || c == '\t'; }

}  // namespace

bool is_boundary(std::string_view text) noexcept {
  constexpr std::string_view others = "'()+_,-./:=? ";
  return !text.empty() && text.size() <= boundary_size_max && text.back() != ' ' &&
         std::ranges::all_of(text, [others](char c) {
           return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
         });
}

MultipartParser::MultipartParser(std::string_view boundary, const FormLimits& limits)
    : delimiter_("\r\n--"),
      limits_(limits),
      head_limits_{.trailers_max = fields_max, .trailers_bytes_max = limits.head_bytes_max},
      head_parser_(h1::HeadKind::part, head_limits_) {
  delimiter_ += boundary;
}

Result<MultipartParser::Event> MultipartParser::parse(Buffer& input, Buffer& output,
                                                      std::size_t bytes_max) {
  if (error_) return std::unexpected(error_);
  while (true) {
    const State before = state_;
    const Result<Event> event = parse_next(input, output, bytes_max);
    if (!event) error_ = event.error();
    if (!event || *event != Event::none || state_ == before) return event;
  }
}

Result<MultipartParser::Event> MultipartParser::parse_next(Buffer& input, Buffer& output,
                                                           std::size_t bytes_max) {
  switch (state_) {
    case State::begin:
      return parse_begin(input);
    case State::preamble:
      return parse_preamble(input);
    case State::after_delimiter:
      return parse_after_delimiter(input);
    case State::head:
      return parse_head(input);
    case State::contents:
      return parse_contents(input, output, bytes_max);
    case State::after_last:
      return parse_after_last(input);
  }
  return Event::none;
}

/// Counts bytes that mean nothing. Fails if they are too many.
Result<> MultipartParser::ignore(Buffer& input, std::size_t size) noexcept {
  if (size > ignored_bytes_max - ignored_) return failure(http::ErrorCode::body_too_large);
  ignored_ += size;
  input.consume(size);
  return {};
}

/// The CRLF before the first delimiter is that of the head of the message, unless there is a
/// preamble.
Result<MultipartParser::Event> MultipartParser::parse_begin(Buffer& input) {
  const std::string_view first = std::string_view(delimiter_).substr(line_end.size());
  if (input.size() < first.size()) return Event::none;
  const bool has_preamble = !text_of(input.peek(first.size())).starts_with(first);
  if (!has_preamble) input.consume(first.size());
  state_ = has_preamble ? State::preamble : State::after_delimiter;
  return Event::none;
}

Result<MultipartParser::Event> MultipartParser::parse_preamble(Buffer& input) {
  const auto at = input.find(delimiter_);
  // The last bytes may be the begin of a delimiter.
  const std::size_t kept = delimiter_.size() - 1;
  const Result<> ignored = ignore(input, at ? *at : std::max(input.size(), kept) - kept);
  if (!ignored) return std::unexpected(ignored.error());
  if (!at) return Event::none;
  input.consume(delimiter_.size());
  state_ = State::after_delimiter;
  return Event::none;
}

/// Spaces and tabs before the line end are padding.
Result<MultipartParser::Event> MultipartParser::parse_after_delimiter(Buffer& input) {
  while (true) {
    if (input.size() < 2) return Event::none;
    const std::string_view text = text_of(input.peek(2)).substr(0, 2);
    if (text == line_end) break;
    if (text == "--" && !is_padded_) {
      input.consume(2);
      state_ = State::after_last;
      return Event::end;
    }
    if (!is_padding(text[0])) return failure(http::ErrorCode::bad_delimiter);
    is_padded_ = true;
    const Result<> ignored = ignore(input, 1);
    if (!ignored) return std::unexpected(ignored.error());
  }
  input.consume(2);
  is_padded_ = false;
  state_ = State::head;
  if (parts_++ == limits_.parts_max) return failure(http::ErrorCode::too_many_form_parts);
  fields_.clear();
  head_parser_.restart(h1::HeadKind::part);
  return Event::none;
}

Result<MultipartParser::Event> MultipartParser::parse_head(Buffer& input) {
  if (input.empty()) return Event::none;
  // As much as the longest head; a longer one is refused.
  const std::size_t size_max = limits_.head_bytes_max + 2 * (fields_max + 2);
  const auto size = head_parser_.parse(text_of(input.peek(size_max)).substr(0, size_max), fields_);
  if (!size) return std::unexpected(size.error());
  if (!*size) return Event::none;
  input.consume(**size);
  state_ = State::contents;
  clear_ = 0;
  part_bytes_ = 0;
  return Event::part;
}

Result<MultipartParser::Event> MultipartParser::parse_contents(Buffer& input, Buffer& output,
                                                               std::size_t bytes_max) {
  if (clear_ == 0) {
    const auto at = input.find(delimiter_);
    if (at == 0) {
      input.consume(delimiter_.size());
      state_ = State::after_delimiter;
      return Event::part_end;
    }
    // The last bytes may be the begin of a delimiter.
    const std::size_t kept = delimiter_.size() - 1;
    clear_ = at ? *at : std::max(input.size(), kept) - kept;
    if (clear_ == 0) return Event::none;
  }
  const std::size_t size = std::min(clear_, bytes_max);
  if (size > limits_.part_bytes_max - part_bytes_)
    return failure(http::ErrorCode::form_part_too_large);
  output.append(input.take(size));
  clear_ -= size;
  part_bytes_ += size;
  return Event::data;
}

/// Padding, and an epilogue after a line end.
Result<MultipartParser::Event> MultipartParser::parse_after_last(Buffer& input) {
  while (!input.empty()) {
    std::size_t size = input.size();
    if (line_end_ < line_end.size()) {
      const char next = text_of(input.front())[0];
      const bool is_padded = line_end_ == 0 && is_padding(next);
      if (!is_padded && next != line_end[line_end_]) return failure(http::ErrorCode::bad_delimiter);
      line_end_ += is_padded ? 0 : 1;
      size = 1;
    }
    const Result<> ignored = ignore(input, size);
    if (!ignored) return std::unexpected(ignored.error());
  }
  return Event::none;
}

Result<> MultipartParser::end_input() const noexcept {
  if (state_ != State::after_last) return std::unexpected(StreamError::truncated);
  if (line_end_ == 1) return failure(http::ErrorCode::bad_delimiter);
  return {};
}

}  // namespace tambour::http::detail::forms
