// End-of-stream errors for code that reads messages.
//
// For read(2), the end of a stream is not an error but 0 bytes. A reader of messages distinguishes
// two ends, one of which means that data was lost. Both are values of their own error category and
// can be compared with an Error: `if (line.error() == StreamError::eof)`.
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour {

/// How a stream that is read as messages can end.
enum class StreamError : int {
  eof = 1,    ///< The stream ended between two messages.
  truncated,  ///< The stream ended within a message.
};

/// The category "tambour.stream", whose values are those of StreamError. Any thread.
const std::error_category& stream_category() noexcept;

/// Converts to an Error, also implicitly: `error == StreamError::eof`.
[[nodiscard]] inline Error make_error_code(
    StreamError error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), stream_category()};
}

}  // namespace tambour

template <>
struct std::is_error_code_enum<tambour::StreamError> : std::true_type {};

#pragma GCC visibility pop
