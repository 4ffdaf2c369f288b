// The TLS context for proxies that are reached with TLS.
#pragma once

#include <tambour/base/result.h>
#include <tambour/net/connector.h>
#include <tambour/tls/context.h>

namespace tambour::detail::client {

/// ConnectOptions::proxy_tls, or one with the certificates of the system, which all threads share.
/// It reads files when it is created.
[[nodiscard]] Result<tls::ClientContext> proxy_context(const ConnectOptions& options);

}  // namespace tambour::detail::client
