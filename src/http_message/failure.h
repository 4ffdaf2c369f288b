// Conversion of http::ErrorCode values to `Result`.
#pragma once

#include <expected>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>

namespace tambour::http {

/// Returns the error value of a `Result`.
[[nodiscard]] inline std::unexpected<Error> failure(ErrorCode error) noexcept {
  return std::unexpected(make_error_code(error));
}

}  // namespace tambour::http
