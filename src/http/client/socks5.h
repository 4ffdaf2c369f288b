// The client of SOCKS 5: RFC 1928, and RFC 1929 for users and passwords.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tambour/http_auth.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>

namespace tambour::http::client {

/// Asks the proxy at the other end of `stream` for a connection. A name is resolved by the proxy.
/// Reads not more than its answers. Fails with the errors of SOCKS in HttpError, with
/// proxy_authentication_required, proxy_bad_answer, bad_proxy if the name is too long, and with
/// those of the stream. The credentials must fit in their fields.
[[nodiscard]] Task<Result<>> open_socks5(SocketStream& stream,
                                         std::optional<BasicCredentials> credentials,
                                         std::string host, std::uint16_t port);

}  // namespace tambour::http::client
