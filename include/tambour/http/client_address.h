// The address of the client behind trusted proxies: Forwarded (RFC 7239) and X-Forwarded-For. Every
// client can send these fields. Only addresses that a trusted proxy has appended are used: the
// client is the rightmost address that does not belong to a trusted proxy.
#pragma once

#include <cstdint>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/router.h>
#include <tambour/net/ip_address.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The field to which the proxies append addresses. The other one may have been sent by the client,
/// and is ignored.
enum class ForwardingField : std::uint8_t { x_forwarded_for, forwarded };

/// Which peers are proxies whose fields are trusted.
struct ClientAddressOptions {
  std::vector<IpNetwork> trusted{};  ///< The networks of the proxies.
  /// The peers on Unix sockets are proxies.
  bool trusts_unix_peers = false;
  ForwardingField field = ForwardingField::x_forwarded_for;
};

/// Middleware that sets Request::client_address() for requests of trusted peers. From the right,
/// the first address that is not trusted is the client; if all are, the leftmost one. An element
/// that is not an address ("unknown", for example) ends the search: the client is then the proxy
/// that appended it. If a Forwarded field is malformed, the client is the peer. Use it before other
/// middleware. Fails with EINVAL if no peer is trusted. Throws std::bad_alloc.
///
///   const auto proxies = or_throw(IpNetwork::parse("10.0.0.0/8"));
///   router.use(or_throw(http::client_address({.trusted = {proxies}})));
[[nodiscard]] Result<Middleware> client_address(ClientAddressOptions options);

}  // namespace tambour::http

#pragma GCC visibility pop
