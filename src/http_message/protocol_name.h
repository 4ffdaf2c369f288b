// The names of the versions of HTTP in ALPN (RFC 7301): which of them the library speaks.
//
// To speak another one, add it here; src/http/protocol.h chooses the version of a connection.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/http/error.h>

#include "http_message/failure.h"

namespace tambour::http {

enum class Protocol : std::uint8_t { http_1, http_2 };

/// Whether an end of a connection speaks HTTP/2, besides HTTP/1.
enum class Http2Support : std::uint8_t { none, spoken };

/// By its name in ALPN. Fails with http::ErrorCode::negotiated_http_2 or negotiated_other_protocol.
[[nodiscard]] inline Result<Protocol> protocol_named(std::string_view name,
                                                     Http2Support http_2) noexcept {
  if (name == "http/1.1" || name == "http/1.0") return Protocol::http_1;
  if (name != "h2") return failure(ErrorCode::negotiated_other_protocol);
  if (http_2 == Http2Support::none) return failure(ErrorCode::negotiated_http_2);
  return Protocol::http_2;
}

}  // namespace tambour::http
