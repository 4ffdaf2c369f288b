// The one place that chooses the version of HTTP on a connection: by ALPN (RFC 7301) or by the
// first bytes.
//
// A protocol that is not served fails with an error that names it: the peer has chosen it, and
// would not understand another one (RFC 7301, section 3.2). To serve another protocol, add it to
// http_message/protocol_name.h, and to serve_connection() or the client's connections.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>
#include <tambour/net/socket_stream.h>
#include <tambour/tls/session.h>

#include "http_message/failure.h"
#include "http_message/protocol_name.h"

namespace tambour::http {

/// The protocol of a connection. Without TLS, and without ALPN, it is HTTP/1.
[[nodiscard]] inline Result<Protocol> negotiated_protocol(const SocketStream& stream,
                                                          Http2Support http_2) noexcept {
  const tls::Session* const session = stream.tls();
  const std::string_view name = session != nullptr ? session->alpn() : "";
  if (name.empty()) return Protocol::http_1;
  return protocol_named(name, http_2);
}

/// A client that supports one of them would choose it. Fails with http::ErrorCode::offered_http_2
/// or offered_other_protocol.
[[nodiscard]] inline Result<> check_offered(const std::vector<std::string>& protocols,
                                            Http2Support http_2) noexcept {
  for (const std::string& name : protocols) {
    if (!protocol_named(name, http_2))
      return failure(name == "h2" ? ErrorCode::offered_http_2 : ErrorCode::offered_other_protocol);
  }
  return {};
}

/// True if the first bytes are those of a client that speaks HTTP/2 without negotiation: RFC 9113,
/// section 3.4.
[[nodiscard]] inline bool has_http_2_preface(Buffer& first_bytes) {
  return first_bytes.coalesce().starts_with("PRI * HTTP/2.0\r\n");
}

}  // namespace tambour::http
