// Conversion of HttpError values to `Result`.
#pragma once

#include <expected>

#include <tambour/http_error.h>
#include <tambour/result.h>

namespace tambour::http {

/// Returns the error value of a `Result`.
[[nodiscard]] inline std::unexpected<Error> failure(HttpError error) noexcept {
  return std::unexpected(make_error_code(error));
}

}  // namespace tambour::http
