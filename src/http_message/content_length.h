// The field Content-Length: RFC 9110, section 8.6.
#pragma once

#include <cstdint>
#include <optional>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

namespace tambour::http {

/// Returns no value if the field is missing. A list of equal lengths is rejected too, as RFC 9110,
/// section 8.6, permits. Fails with http::ErrorCode::bad_content_length or several_content_lengths.
[[nodiscard]] Result<std::optional<std::uint64_t>> content_length(const Fields& fields) noexcept;

/// The same of a response, in which a length may be repeated: servers send the field twice, and
/// every client reads it in the same way. Only the client decides by it where the response ends.
[[nodiscard]] Result<std::optional<std::uint64_t>> repeated_content_length(
    const Fields& fields) noexcept;

}  // namespace tambour::http
