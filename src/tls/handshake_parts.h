// What the handshakes of streams and of connections have in common.
#pragma once

#include <memory>
#include <string>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/endpoint.h>
#include <tambour/tls/context.h>

#include "tls/context/context.h"
#include "tls/filter.h"

namespace tambour::tls::detail {

/// Aborts with a message if tls::accept() or tls::connect() was called with an empty context.
void check_context(bool exists) noexcept;
/// Null if memory runs out.
[[nodiscard]] std::unique_ptr<Filter> make_server_filter(
    const std::shared_ptr<ServerGeneration>& generation) noexcept;
/// What tells the servers of one host apart if `peer` is one of them: the port, or the endpoint of
/// another kind. Empty if there is no peer. Throws std::bad_alloc.
[[nodiscard]] std::string session_scope_of(const Result<Endpoint>& peer);
/// Offers a session only to a server of the same `host` and `session_scope`, and keeps none if the
/// latter is empty. `early_data` is sent if there is a session that permits it. If `host` is
/// neither a name nor an address, the handshake fails with EINVAL. Null if memory runs out; throws
/// std::bad_alloc too.
[[nodiscard]] std::unique_ptr<Filter> make_client_filter(
    const std::shared_ptr<ClientGeneration>& generation, std::string host,
    const std::string& session_scope, std::string early_data = {});

/// Counts a failed handshake, and reports it to on_failure; without a message if memory runs out.
void report(const Result<Endpoint>& peer, const Generation& generation, const Error& error,
            const tls::Session& session) noexcept;

}  // namespace tambour::tls::detail
