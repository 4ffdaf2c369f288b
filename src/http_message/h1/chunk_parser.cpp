// ChunkParser: a state machine over single bytes, because the size line of a chunk may be divided
// anywhere.
#include "http_message/h1/chunk_parser.h"

#include <algorithm>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http::detail::h1 {
namespace {

// A size below 2^60 cannot overflow when it is added to the size of a body.
constexpr std::uint8_t digits_max = 15;
/// Clients accept one more if the first digits are zeros.
constexpr std::uint8_t lenient_digits_max = 16;
constexpr std::uint64_t before_last_digit_max = std::uint64_t{1} << 56;

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

}  // namespace

Result<ChunkParser::Part> ChunkParser::parse(std::string_view bytes, std::size_t data_max) {
  Part part;
  while (part.framing < bytes.size() && state_ != State::data && state_ != State::complete) {
    if (auto parsed = parse_byte(bytes[part.framing]); !parsed)
      return std::unexpected(parsed.error());
    ++part.framing;
  }
  if (state_ != State::data) return part;
  part.data = static_cast<std::size_t>(
      std::min<std::uint64_t>(left_, std::min(bytes.size() - part.framing, data_max)));
  left_ -= part.data;
  if (left_ == 0) state_ = State::data_return;
  return part;
}

Result<> ChunkParser::parse_byte(char c) {
  switch (state_) {
    case State::size:
      return parse_size(c);
    case State::line_feed:
      if (c != '\n') return failure(http::ErrorCode::bare_carriage_return);
      return end_line();
    case State::data_return:
      if (c != '\r') return failure(http::ErrorCode::bad_chunk_end);
      state_ = State::data_line_feed;
      return {};
    case State::data_line_feed:
      if (c != '\n') return failure(http::ErrorCode::bad_chunk_end);
      state_ = State::size;
      left_ = 0;
      digits_ = 0;
      return {};
    default:
      if (c == '\n') return failure(http::ErrorCode::bare_line_feed);
      // The CR after an extension is the end of the line.
      if (c != '\r' && ++extension_bytes_ > limits_->http_1.chunk_extension_bytes_max)
        return failure(http::ErrorCode::chunk_extensions_too_large);
      return mode_ == ParsingMode::strict ? parse_extension(c) : parse_ignored_text(c);
  }
}

Result<> ChunkParser::parse_size(char c) {
  if (const int digit = hex_value(c); digit >= 0) {
    const bool is_lenient = mode_ == ParsingMode::lenient_response;
    if (digits_ == (is_lenient ? lenient_digits_max : digits_max) || left_ >= before_last_digit_max)
      return failure(http::ErrorCode::bad_chunk_size);
    ++digits_;
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    return {};
  }
  if (digits_ == 0) return failure(http::ErrorCode::bad_chunk_size);
  if (c == '\r') {
    state_ = State::line_feed;
    return {};
  }
  if (c == '\n') return failure(http::ErrorCode::bare_line_feed);
  if (c != ';' && !is_space(c)) return failure(http::ErrorCode::bad_chunk_size);
  if (++extension_bytes_ > limits_->http_1.chunk_extension_bytes_max)
    return failure(http::ErrorCode::chunk_extensions_too_large);
  state_ = c == ';' ? State::before_name : State::before_semicolon;
  if (c == ';' && mode_ == ParsingMode::lenient_response) state_ = State::ignored_text;
  return {};
}

/// Extensions have no meaning for this library, and their line end is unambiguous.
Result<> ChunkParser::parse_ignored_text(char c) {
  if (c == '\r') {
    state_ = State::line_feed;
  } else if (state_ == State::before_semicolon && !is_space(c)) {
    if (c != ';') return failure(http::ErrorCode::bad_chunk_size);
    state_ = State::ignored_text;
  } else if (!is(c, value_char)) {
    return failure(http::ErrorCode::bad_chunk_extension);
  }
  return {};
}

/// chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )
Result<> ChunkParser::parse_extension(char c) {
  switch (state_) {
    case State::before_semicolon:
      if (is_space(c)) return {};
      if (c != ';') return failure(http::ErrorCode::bad_chunk_size);
      state_ = State::before_name;
      return {};
    case State::before_name:
      if (is_space(c)) return {};
      if (!is(c, token_char)) return failure(http::ErrorCode::bad_chunk_extension);
      state_ = State::name;
      return {};
    case State::name:
      if (is(c, token_char)) return {};
      if (c == '\r') {
        state_ = State::line_feed;
        return {};
      }
      [[fallthrough]];
    case State::after_name:
      if (is_space(c)) {
        state_ = State::after_name;
      } else if (c == '=') {
        state_ = State::before_value;
      } else if (c == ';') {
        state_ = State::before_name;
      } else {
        return failure(http::ErrorCode::bad_chunk_extension);
      }
      return {};
    default:
      return parse_extension_value(c);
  }
}

Result<> ChunkParser::parse_extension_value(char c) {
  switch (state_) {
    case State::before_value:
      if (is_space(c)) return {};
      if (c != '"' && !is(c, token_char)) return failure(http::ErrorCode::bad_chunk_extension);
      state_ = c == '"' ? State::quoted_value : State::value;
      return {};
    case State::quoted_value:
      if (c == '"') {
        state_ = State::after_quote;
      } else if (c == '\\') {
        state_ = State::quoted_pair;
      } else if (!is(c, value_char)) {
        return failure(http::ErrorCode::bad_chunk_extension);
      }
      return {};
    case State::quoted_pair:
      if (!is(c, value_char)) return failure(http::ErrorCode::bad_chunk_extension);
      state_ = State::quoted_value;
      return {};
    default:
      return end_extension(c);
  }
}

Result<> ChunkParser::end_extension(char c) {
  if (state_ == State::value && is(c, token_char)) return {};
  if (is_space(c)) {
    state_ = State::after_value;
  } else if (c == ';') {
    state_ = State::before_name;
  } else if (c == '\r' && state_ != State::after_value) {
    state_ = State::line_feed;
  } else {
    return failure(http::ErrorCode::bad_chunk_extension);
  }
  return {};
}

Result<> ChunkParser::end_line() {
  if (left_ == 0) {
    state_ = State::complete;
    return {};
  }
  body_bytes_ += left_;
  if (body_bytes_ > limits_->body_bytes_max) return failure(http::ErrorCode::body_too_large);
  state_ = State::data;
  return {};
}

}  // namespace tambour::http::detail::h1
