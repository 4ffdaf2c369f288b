// Errors of the inspector.
#pragma once

#include <system_error>

#include <tambour/base/cxx23.h>
#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour::inspector {

/// Why an inspector does not start.
enum class ErrorCode {
  /// The address is not a loopback address, and InspectorOptions::authenticate is not set.
  not_authenticated = 1,
};

/// The category "tambour.inspector", whose values are those of ErrorCode. Any thread.
[[nodiscard]] const std::error_category& error_category() noexcept;

/// Converts to an Error, also implicitly.
inline Error make_error_code(ErrorCode code) noexcept {
  return {static_cast<int>(code), error_category()};
}

}  // namespace tambour::inspector

template <>
struct std::is_error_code_enum<tambour::inspector::ErrorCode> : std::true_type {};

#pragma GCC visibility pop
