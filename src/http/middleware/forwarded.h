// The lists of addresses that proxies append to: Forwarded (RFC 7239) and X-Forwarded-For.
#pragma once

#include <optional>

#include <tambour/detail/namespaces.h>
#include <tambour/http/client_address.h>
#include <tambour/http/fields.h>
#include <tambour/net/ip_address.h>

#include "http/middleware/trusted_peers.h"

namespace tambour::http {

/// The rightmost address that is not trusted, of a request from a trusted peer; the leftmost one if
/// all are. An element that is no address ends the search. No value if there is no address after
/// it, or if a Forwarded field is malformed: the client is the peer then. Throws std::bad_alloc.
[[nodiscard]] std::optional<IpAddress> find_client(const Fields& fields, ForwardingField field,
                                                   const TrustedPeers& trusted);

}  // namespace tambour::http
