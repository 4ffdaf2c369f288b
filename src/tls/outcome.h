// Errors of TLS as outcomes of transfers.
#pragma once

#include <cstdint>

#include <tambour/tls_error.h>

#include "net/outcome.h"

namespace tambour::tls {

[[nodiscard]] inline std::int32_t outcome_of(TlsError error) noexcept {
  static const std::int32_t range = net::error_range_of(tls_category());
  return -(range + static_cast<std::int32_t>(error));
}

}  // namespace tambour::tls
