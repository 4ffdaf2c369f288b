// DNS over TLS for a dns::Resolver: RFC 7858.
//
// Strict (RFC 8310): a server that does not prove its identity is not queried, and no query is sent
// without TLS. If no server can be reached, lookups fail; they do not fall back to plain DNS.
#pragma once

#include <memory>
#include <string>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/resolver.h>
#include <tambour/tls/context.h>

#pragma GCC visibility push(default)

namespace tambour::dns {

/// The standard port: RFC 7858, section 3.1.
inline constexpr std::uint16_t over_tls_port = 853;

/// Sends the queries of a resolver over TLS:
///
///   dns::Resolver resolver(loop, {.servers = {*Endpoint::parse("192.0.2.1", dns::over_tls_port)},
///                               .transport = dns::over_tls(context, "dns.example.org")});
///
/// `server_name` is the name that the servers prove to have, with the authorities of the context.
/// Empty: each proves its address. A context with `pinned_keys` compares the key of the server
/// instead. Servers of resolv.conf(5) are queried at port 853, unless `servers` is set.
///
/// The resolver keeps the connection to a server for 10 s without queries, and sends concurrent
/// queries over it; a later connection resumes the session. tls::Options::on_failure of the context
/// gets the reason if a handshake fails; lookups then fail with dns::ErrorCode::insecure_server, or
/// EAI_AGAIN. So they do if the server chooses another protocol of tls::Options::alpn than "dot":
/// the list should be empty, or {"dot"}. `context` must not be empty.
///
/// Ownership: the resolvers share the result.
/// Thread: resolvers on several loops may use the same result. Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<Transport> over_tls(tls::ClientContext context,
                                                  std::string server_name = {});

}  // namespace tambour::dns

#pragma GCC visibility pop
