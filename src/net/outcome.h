// Outcomes of transfers: numbers of bytes, or negated numbers of errors. Errors of the system have
// their errno values. A protocol between stream and socket, such as TLS, has a range of numbers for
// the errors of its own category.
#pragma once

#include <cstdint>
#include <system_error>

#include <tambour/base/result.h>

namespace tambour::detail::net {

/// Linux has no errno value above 4095, and no category has an error above it.
inline constexpr std::int32_t error_range = 4096;

/// Returns the number of the category's error 0, a multiple of `error_range`. The first call
/// assigns it; a process can have seven such categories. The numbers fit into 16 bits. Callable
/// from any thread.
[[nodiscard]] std::int32_t error_range_of(const std::error_category& category) noexcept;

/// `outcome` may be negated.
[[nodiscard]] Error error_of(std::int32_t outcome) noexcept;

[[nodiscard]] inline Result<> result_of(std::int32_t outcome) noexcept {
  if (outcome < 0) return std::unexpected(error_of(outcome));
  return {};
}

}  // namespace tambour::detail::net
