// What the handshakes of streams and of connections have in common.
#pragma once

#include <memory>
#include <string>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/endpoint.h>
#include <tambour/tls/context.h>
#include <tambour/tls/handshake.h>

#include "tls/context/context.h"
#include "tls/filter.h"

namespace tambour::tls::detail {

/// Aborts with a message if tls::accept() or tls::connect() was called with an empty context.
void check_context(bool exists) noexcept;
/// Null if memory runs out.
[[nodiscard]] std::unique_ptr<Filter> make_server_filter(
    const std::shared_ptr<ServerGeneration>& generation) noexcept;
/// `generation` is that of `context`. `peer` is that of a socket without TLS; otherwise an error.
/// Offers a session only to a server of the same name and port; if both the port and the peer are
/// unknown, offers and keeps none. `early_data` is sent if there is a session that permits it. If
/// `host` is neither a name nor an address, the handshake fails with EINVAL. Null if memory runs
/// out; throws std::bad_alloc too.
[[nodiscard]] std::unique_ptr<Filter> make_client_filter(
    const tls::ClientContext& context, const std::shared_ptr<ClientGeneration>& generation,
    Host host, const Result<Endpoint>& peer, std::string early_data = {});

/// Counts a failed handshake, and reports it to on_failure; without a message if memory runs out.
void report(const Result<Endpoint>& peer, const Generation& generation, const Error& error,
            const tls::Session& session) noexcept;

}  // namespace tambour::tls::detail
