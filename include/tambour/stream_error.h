// How a stream ends where a message was expected.
//
// For read(2) an end is no error, but 0 bytes; for whoever reads messages there are two ends, of
// which one means that something is lost. Both are values of a category of their own, and compare
// with an Error: `if (line.error() == StreamError::end)`.
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include <tambour/result.h>

namespace tambour {

enum class StreamError : int {
  end = 1,    ///< The peer has sent all that it will, and all of that was whole messages.
  truncated,  ///< The peer has ended within a message.
};

const std::error_category& stream_category() noexcept;

inline Error make_error_code(StreamError error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), stream_category()};
}

}  // namespace tambour

template <>
struct std::is_error_code_enum<tambour::StreamError> : std::true_type {};
