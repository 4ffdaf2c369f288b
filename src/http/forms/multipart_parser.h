// Parses the body of multipart/form-data: RFC 7578, RFC 2046 section 5.1.1.
//
// Each delimiter is a whole line, at the end of which spaces and tabs are padding. What precedes
// the first line and follows the last one is ignored, up to a limit. The verdict and the parts do
// not depend on how the bytes arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>
#include <tambour/http/form.h>

#include "http_message/h1/head_parser.h"

namespace tambour::http::detail::forms {

/// The boundary in a Content-Type: 1 to 70 characters of RFC 2046, not ending with a space.
[[nodiscard]] bool is_boundary(std::string_view text) noexcept;

class MultipartParser {
 public:
  enum class Event : std::uint8_t {
    none,      ///< More input is needed.
    part,      ///< headers() are those of a part.
    data,      ///< Contents of the part were appended.
    part_end,  ///< The contents of the part are complete.
    end,       ///< All parts have been parsed. What follows is still to be parsed.
  };

  /// `boundary` must be one.
  MultipartParser(std::string_view boundary, const FormLimits& limits);
  MultipartParser(const MultipartParser&) = delete;
  MultipartParser& operator=(const MultipartParser&) = delete;
  ~MultipartParser() = default;

  /// Removes bytes from `input`, until something is known. Moves at most `bytes_max` bytes of
  /// contents to the end of `output`. Returns `end` once, and then `none`. After an error, each
  /// further call fails with it. Throws std::bad_alloc.
  [[nodiscard]] Result<Event> parse(Buffer& input, Buffer& output, std::size_t bytes_max);
  /// Call it at the end of the body, when more input was needed. Fails with StreamError::truncated
  /// if the last delimiter is missing, and with http::ErrorCode::bad_delimiter.
  [[nodiscard]] Result<> end_input() const noexcept;

  [[nodiscard]] Fields& headers() noexcept { return fields_; }

 private:
  enum class State : std::uint8_t { begin, preamble, after_delimiter, head, contents, after_last };

  [[nodiscard]] Result<Event> parse_next(Buffer& input, Buffer& output, std::size_t bytes_max);
  [[nodiscard]] Result<> ignore(Buffer& input, std::size_t size) noexcept;
  [[nodiscard]] Result<Event> parse_begin(Buffer& input);
  [[nodiscard]] Result<Event> parse_preamble(Buffer& input);
  [[nodiscard]] Result<Event> parse_after_delimiter(Buffer& input);
  [[nodiscard]] Result<Event> parse_head(Buffer& input);
  [[nodiscard]] Result<Event> parse_contents(Buffer& input, Buffer& output, std::size_t bytes_max);
  [[nodiscard]] Result<Event> parse_after_last(Buffer& input);

  std::string delimiter_;  ///< With the CRLF in front of it.
  FormLimits limits_;
  MessageLimits head_limits_;
  h1::HeadParser head_parser_;
  Fields fields_;
  Error error_{};
  State state_ = State::begin;
  std::size_t parts_ = 0;
  std::size_t clear_ = 0;     ///< The bytes of the input that are known to be contents.
  std::size_t line_end_ = 0;  ///< The bytes of the line end after the last delimiter.
  std::size_t ignored_ = 0;   ///< The bytes of preamble, padding and epilogue.
  bool is_padded_ = false;    ///< There are blanks after the current delimiter.
  std::uint64_t part_bytes_ = 0;
};

}  // namespace tambour::http::detail::forms
