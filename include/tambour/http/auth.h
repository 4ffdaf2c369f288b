// Basic authentication: RFC 7617. Name and password are only encoded, not encrypted: use it over
// TLS.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>

#pragma GCC visibility push(default)

namespace tambour::http {

struct BasicCredentials {
  std::string user{};
  std::string password{};
};

/// The value of the Authorization field: "Basic dXNlcjpwYXNz". Fails with
/// http::ErrorCode::bad_credentials if the user contains a colon, or if one has a control
/// character. Throws std::bad_alloc.
[[nodiscard]] Result<std::string> format_basic_credentials(const BasicCredentials& credentials);

/// Parses the value of an Authorization field. No value if it is another scheme, or malformed.
/// Throws std::bad_alloc.
[[nodiscard]] std::optional<BasicCredentials> parse_basic_credentials(std::string_view value);

/// Compares two strings in time that depends only on their lengths.
[[nodiscard]] bool constant_time_equal(std::string_view given, std::string_view expected) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
