// Error reporting of the whole library.
//
// Functions that set something up return a Result. Errors that occur later are passed to the
// completion or callback. An error is never reported both ways. System errors keep their errno
// value, in std::generic_category().
#pragma once

#include <cerrno>
#include <expected>
#include <system_error>

#include <tambour/cxx23.h>

namespace tambour {

using Error = std::error_code;

/// A value or an error.
template <class T = void>
using Result = std::expected<T, Error>;

/// Converts an errno value to an Error. Accepts negated values, as in io_uring completions.
[[nodiscard]] inline Error system_error(int errno_value) noexcept {
  return {errno_value < 0 ? -errno_value : errno_value, std::generic_category()};
}

}  // namespace tambour
