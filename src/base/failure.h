// Results of system calls as `Result` values.
#pragma once

#include <cerrno>
#include <cstdint>
#include <expected>

#include <tambour/result.h>

namespace tambour::base {

/// What a function that returns a `Result` returns if it fails with `errno_value`, which may be
/// negated.
[[nodiscard]] inline std::unexpected<Error> failure(int errno_value) noexcept {
  return std::unexpected(system_error(errno_value));
}

/// Success, or the error that a negative `outcome` of an operation stands for.
[[nodiscard]] inline Result<> result_of(std::int32_t outcome) noexcept {
  if (outcome < 0) return failure(outcome);
  return {};
}

}  // namespace tambour::base
