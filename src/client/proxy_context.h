// The TLS context for proxies that are reached with TLS.
#pragma once

#include <tambour/connector.h>
#include <tambour/result.h>
#include <tambour/tls_context.h>

namespace tambour::client {

/// ConnectOptions::proxy_tls, or one with the certificates of the system, which all threads share.
/// It reads files when it is created.
[[nodiscard]] Result<TlsClientContext> proxy_context(const ConnectOptions& options);

}  // namespace tambour::client
