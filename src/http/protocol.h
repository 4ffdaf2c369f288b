// What ALPN may choose for a connection of HTTP/1: RFC 7301.
#pragma once

#include <string_view>

#include <tambour/http_error.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/tls_session.h>

#include "http_message/failure.h"

namespace tambour::http::h1 {

[[nodiscard]] constexpr bool is_spoken(std::string_view protocol) noexcept {
  return protocol == "http/1.1" || protocol == "http/1.0";
}

/// The protocol that was negotiated must be the one that is spoken: section 3.2.
inline Result<> check_negotiated(const SocketStream& stream) noexcept {
  const TlsSession* const session = stream.tls();
  const std::string_view protocol = session != nullptr ? session->alpn() : "";
  if (protocol.empty() || is_spoken(protocol)) return {};
  return failure(protocol == "h2" ? HttpError::negotiated_http_2
                                  : HttpError::negotiated_other_protocol);
}

}  // namespace tambour::http::h1
