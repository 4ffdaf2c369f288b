// Which errors of a connection attempt may pass, so that it is worth repeating.
#include "client/may_pass.h"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <tambour/dns/error.h>
#include <tambour/net/proxy.h>
#include <tambour/net/resolver.h>
#include <tambour/net/stream_error.h>
#include <tambour/tls/error.h>

namespace tambour::detail::client {

bool may_pass(const Error& error) noexcept {
  if (error.category() == resolver_category()) return error.value() == EAI_AGAIN;
  if (error.category() == dns::error_category()) return error == dns::ErrorCode::too_many_lookups;
  if (error.category() == proxy_category()) {
    return error == ProxyError::socks_failure || error == ProxyError::socks_network_unreachable ||
           error == ProxyError::socks_host_unreachable ||
           error == ProxyError::socks_connection_refused;
  }
  // The connection was lost, during the handshake or after it.
  if (error == StreamError::eof || error == tls::ErrorCode::truncated) return true;
  if (error.category() != std::generic_category()) return false;
  constexpr int passing[] = {EADDRINUSE,  EADDRNOTAVAIL, ECONNABORTED, ECONNREFUSED, ECONNRESET,
                             EHOSTDOWN,   EHOSTUNREACH,  EMFILE,       ENETDOWN,     ENETRESET,
                             ENETUNREACH, ENONET,        ENFILE,       ENOBUFS,      ENOMEM,
                             EPIPE,       ETIMEDOUT};
  return std::ranges::find(passing, error.value()) != std::end(passing);
}

}  // namespace tambour::detail::client
