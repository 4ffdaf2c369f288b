// Tunnels through proxies: HTTP (CONNECT) and SOCKS 5 (RFC 1928, 1929).
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/http/auth.h>
#include <tambour/http/fields.h>
#include <tambour/net/proxy.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

namespace tambour::detail::client {

[[nodiscard]] inline std::unexpected<Error> failure(ProxyError error) noexcept {
  return std::unexpected<Error>(error);
}

struct ProxyServer {
  enum class Kind : std::uint8_t { http, https, socks5 };

  /// Speaks HTTP, so that it can forward requests.
  [[nodiscard]] bool is_http() const noexcept { return kind != Kind::socks5; }

  Kind kind = Kind::http;
  std::string host{};  ///< An IPv6 address without brackets.
  std::uint16_t port = 0;
  std::optional<http::BasicCredentials> credentials{};
  std::string authorization{};  ///< The value of Proxy-Authorization; may be empty.
  /// With Authentication::digest, what the proxy has answered with 407.
  std::optional<http::Fields> challenge{};
};

/// Fails with ProxyError::bad_url.
[[nodiscard]] Result<ProxyServer> parse_proxy(std::string_view text);

/// "user:password", percent-encoded. Fails with http::ErrorCode::url_bad_encoding.
[[nodiscard]] Result<http::BasicCredentials> parse_userinfo(std::string_view userinfo);

/// Asks the proxy at the other end of `stream` for a connection to the host. What is sent next goes
/// there. `proxy` must exist until the task has ended, and gets the challenge of a 407. Fails with
/// ProxyError, with http::ErrorCode if a proxy of HTTP answers something else, and with the errors
/// of the stream.
[[nodiscard]] Task<Result<>> open_tunnel(SocketStream& stream, ProxyServer& proxy, std::string host,
                                         std::uint16_t port);

/// Answers the challenge of the proxy for a tunnel to the host: sets `authorization`. Returns false
/// if there is none that can be answered. `random` becomes the nonce of the client.
[[nodiscard]] bool answer_challenge(ProxyServer& proxy, const std::string& host, std::uint16_t port,
                                    std::array<std::uint64_t, 2> random);

}  // namespace tambour::detail::client
