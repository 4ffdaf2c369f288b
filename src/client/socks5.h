// The client of SOCKS 5: RFC 1928, and RFC 1929 for users and passwords.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tambour/base/result.h>
#include <tambour/http/auth.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::detail::client {

/// Asks the proxy at the other end of `stream` for a connection. A name is resolved by the proxy.
/// Reads not more than its answers. Fails with ProxyError (bad_host if the name is too long),
/// and with the errors of the stream. The credentials must fit in their fields.
[[nodiscard]] Task<Result<>> open_socks5(SocketStream& stream,
                                         std::optional<http::BasicCredentials> credentials,
                                         std::string host, std::uint16_t port);

}  // namespace tambour::detail::client
