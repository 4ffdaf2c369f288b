// How Tambour says that something failed.
//
// What is set up returns a Result; what fails later is told by the completion or callback; never by
// both. System errors stay what they are (errno in std::generic_category).
#pragma once

#include <cerrno>
#include <expected>
#include <system_error>

#include <tambour/cxx23.h>

namespace tambour {

using Error = std::error_code;

/// A value, or the reason why there is none.
template <class T = void>
using Result = std::expected<T, Error>;

/// The error that an errno value stands for. A negative value, as io_uring completions carry, means
/// the same as its absolute.
inline Error system_error(int errno_value) noexcept {
  return {errno_value < 0 ? -errno_value : errno_value, std::generic_category()};
}

}  // namespace tambour
