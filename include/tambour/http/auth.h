// Authentication of requests. Basic (RFC 7617) only encodes name and password, and does not encrypt
// them: use it over TLS. A client can use Digest (RFC 7616), too: see
// ClientOptions::authentication.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// How a client sends the user and the password of a URL.
enum class Authentication : std::uint8_t {
  /// Sent with each request, encoded but not encrypted: RFC 7617.
  basic,
  /// The password is never sent: the request is first sent without credentials, and then repeated
  /// with a hash of the password and the server's challenge. Later requests reuse the challenge.
  /// RFC 7616.
  digest,
};

/// A user and a password, in UTF-8: RFC 7617.
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
