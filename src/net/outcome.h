// Outcomes of transfers: numbers of bytes, and errors of the system and of TLS in one range.
#pragma once

#include <cstdint>

#include <tambour/result.h>
#include <tambour/tls_error.h>

#include "base/failure.h"

namespace tambour::net {

/// The numbers from here on are those of TlsError; Linux has no errno value above 4095. They fit
/// into 16 bits.
inline constexpr std::int32_t tls_errors_begin = 4096;

[[nodiscard]] constexpr std::int32_t outcome_of(TlsError error) noexcept {
  return -(tls_errors_begin + static_cast<std::int32_t>(error));
}

/// `outcome` may be negated.
[[nodiscard]] inline Error error_of(std::int32_t outcome) noexcept {
  const std::int32_t number = outcome < 0 ? -outcome : outcome;
  if (number > tls_errors_begin) return TlsError(number - tls_errors_begin);
  return system_error(number);
}

[[nodiscard]] inline Result<> result_of(std::int32_t outcome) noexcept {
  if (outcome < 0) return std::unexpected(error_of(outcome));
  return {};
}

}  // namespace tambour::net
