// Moving clients from HTTP to HTTPS: redirects, and HTTP Strict Transport Security (RFC 6797).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <tambour/detail/namespaces.h>
#include <tambour/http/handler.h>
#include <tambour/http/router.h>
#include <tambour/http/status.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// Where redirect_to_https() redirects to.
struct HttpsRedirectOptions {
  std::uint16_t port = 443;
  /// 308 keeps the method and the body; 301 lets old clients change POST into GET.
  Status status = Status::permanent_redirect;
  /// The host of the new URL. Empty: the one in the request, which the client chooses: set it if
  /// caches could keep the redirect of one client for others.
  std::string host{};
};

/// A handler for a server without TLS that redirects each request to the same target with "https".
/// Requests without a host are answered with 400.
///
///   auto plain = http::Server::listen(loop, port_80, http::redirect_to_https());
[[nodiscard]] Handler redirect_to_https(HttpsRedirectOptions options = {});

/// The policy that strict_transport_security() sends: RFC 6797.
struct StrictTransportOptions {
  /// How long browsers use only HTTPS for the host. Start with a few minutes: the policy cannot be
  /// revoked over HTTP. Zero removes it.
  std::chrono::seconds max_age = std::chrono::hours(24 * 365);
  bool include_subdomains = false;
  bool preload = false;  ///< Adds the `preload` directive: see hstspreload.org.
};

/// Middleware that adds Strict-Transport-Security to the responses on connections with TLS.
[[nodiscard]] Middleware strict_transport_security(StrictTransportOptions options = {});

}  // namespace tambour::http

#pragma GCC visibility pop
