// Conversion of errno values to `Result`.
#pragma once

#include <cerrno>
#include <cstdint>
#include <expected>

#include <tambour/base/result.h>

namespace tambour::detail::base {

/// Returns the error value of a `Result` for an errno value, positive or negated.
[[nodiscard]] inline std::unexpected<Error> failure(int errno_value) noexcept {
  return std::unexpected(system_error(errno_value));
}

/// Converts the outcome of an operation: an error if `outcome` is a negated errno value, otherwise
/// success.
[[nodiscard]] inline Result<> result_of(std::int32_t outcome) noexcept {
  if (outcome < 0) return failure(outcome);
  return {};
}

}  // namespace tambour::detail::base
