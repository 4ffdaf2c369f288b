// Connections through proxies: tunnels of HTTP (CONNECT) and SOCKS 5 (RFC 1928, 1929).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/connector.h>
#include <tambour/http_auth.h>
#include <tambour/http_message.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>

namespace tambour::http::client {

struct Origin;

struct ProxyServer {
  enum class Kind : std::uint8_t { http, socks5 };

  Kind kind = Kind::http;
  std::string host{};  ///< An IPv6 address without brackets.
  std::uint16_t port = 0;
  std::optional<BasicCredentials> credentials{};
  std::string authorization{};  ///< The value of Proxy-Authorization; may be empty.
};

/// Fails with HttpError::bad_proxy.
[[nodiscard]] Result<ProxyServer> parse_proxy(std::string_view text);

/// Connects to the origin through the proxy, within options.timeout. What is sent next goes to the
/// origin. Fails with the errors of connect() to the proxy, and with those of proxies in HttpError.
[[nodiscard]] Task<Result<SocketStream>> connect_through(ProxyServer proxy, Origin origin,
                                                         ConnectOptions options,
                                                         MessageLimits limits);

}  // namespace tambour::http::client
