// Errors of TLS as outcomes of transfers.
#pragma once

#include <cstdint>

#include <tambour/detail/namespaces.h>
#include <tambour/tls/error.h>

#include "net/outcome.h"

namespace tambour::tls::detail {

[[nodiscard]] inline std::int32_t outcome_of(tls::ErrorCode error) noexcept {
  static const std::int32_t range = net::error_range_of(tls::error_category());
  return -(range + static_cast<std::int32_t>(error));
}

}  // namespace tambour::tls::detail
