// Parses the chunked transfer coding: RFC 9112, section 7.1. The trailers after the last chunk are
// lines, which HeadParser parses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h1/parsing_mode.h"

namespace tambour::http::detail::h1 {

class ChunkParser {
 public:
  /// `limits` must outlive the parser.
  explicit ChunkParser(const MessageLimits& limits, ParsingMode mode = ParsingMode::strict) noexcept
      : limits_(&limits), mode_(mode) {}

  void restart() noexcept { *this = ChunkParser(*limits_, mode_); }
  /// Only between two bodies. The lenient mode accepts any text as an extension, and blanks after a
  /// size without one.
  void set_mode(ParsingMode mode) noexcept { mode_ = mode; }

  /// A part of the bytes: `framing` bytes to discard, and `data` bytes of the body after them.
  struct Part {
    std::size_t framing = 0;
    std::size_t data = 0;
  };

  /// Parses `bytes`, which follow those of the previous part; the part has at most `data_max` bytes
  /// of data. The part ends before the end of `bytes` after some data, and after the last chunk.
  /// Fails with http::ErrorCode::bad_chunk_size, bad_chunk_extension, chunk_extensions_too_large,
  /// bad_chunk_end, bare_carriage_return, bare_line_feed and body_too_large. After an error the
  /// parser must be restarted.
  [[nodiscard]] Result<Part> parse(std::string_view bytes, std::size_t data_max);

  /// True after the last chunk: the trailers follow.
  [[nodiscard]] bool is_complete() const noexcept { return state_ == State::complete; }
  /// The bytes of the current chunk's data that are still missing.
  [[nodiscard]] std::uint64_t data_left() const noexcept {
    return state_ == State::data ? left_ : 0;
  }
  /// The size of all chunks so far, including the current one.
  [[nodiscard]] std::uint64_t body_bytes() const noexcept { return body_bytes_; }

 private:
  enum class State : std::uint8_t {
    size,              ///< In the digits of the size.
    before_semicolon,  ///< Space before the semicolon of an extension.
    before_name,       ///< After the semicolon.
    name,              ///< In the name of an extension.
    after_name,        ///< Space after the name.
    before_value,      ///< After "=".
    value,             ///< In a value that is a token.
    quoted_value,      ///< In a value that is a quoted string.
    quoted_pair,       ///< After the backslash in a quoted string.
    after_quote,       ///< After a quoted string.
    after_value,       ///< Space after a value.
    ignored_text,      ///< In an extension, if the parser is lenient.
    line_feed,         ///< After the CR of the line.
    data,
    data_return,  ///< After the data.
    data_line_feed,
    complete,
  };

  [[nodiscard]] Result<> parse_byte(char c);
  [[nodiscard]] Result<> parse_size(char c);
  [[nodiscard]] Result<> parse_extension(char c);
  [[nodiscard]] Result<> parse_extension_value(char c);
  [[nodiscard]] Result<> end_extension(char c);
  [[nodiscard]] Result<> parse_ignored_text(char c);
  [[nodiscard]] Result<> end_line();

  const MessageLimits* limits_;
  std::uint64_t left_ = 0;  ///< Of the current chunk; its size while the size is parsed.
  std::uint64_t body_bytes_ = 0;
  std::size_t extension_bytes_ = 0;
  std::uint8_t digits_ = 0;
  ParsingMode mode_;
  State state_ = State::size;
};

}  // namespace tambour::http::detail::h1
