// Handshakes on open connections.
#include <memory>
#include <new>
#include <utility>

#include <tambour/tls.h>

#include "base/check.h"
#include "net/connection/upgrade.h"
#include "tls/handshake_parts.h"

namespace tambour {
namespace {

/// Keeps `generation` and with it its options alive.
void begin(Connection& connection, std::shared_ptr<const tls::Generation> generation,
           std::unique_ptr<tls::Filter> filter, Callback<void(Connection&, Error)> done) {
  const Duration limit = generation->common().handshake_timeout;
  auto reported = [generation = std::move(generation), done = std::move(done)](
                      Connection& own, const Error& error) mutable {
    if (error) tls::report(own.peer_endpoint(), *generation, error, *own.tls());
    if (done) done(own, error);
  };
  net::ConnectionUpgrade::begin(connection, std::move(filter), limit, std::move(reported));
}

void check_context(bool exists) noexcept {
  base::check(exists,
              "tls_accept() or tls_connect() was called with an empty context; create one with "
              "TlsServerContext::create() or TlsClientContext::create()");
}

}  // namespace

void tls_accept(Connection& connection, const TlsServerContext& context,
                Callback<void(Connection&, Error)> done) {
  check_context(bool(context));
  auto generation = tls::ContextAccess::for_handshake(context, connection.loop());
  auto filter = tls::make_server_filter(generation);
  if (filter == nullptr) throw std::bad_alloc();
  begin(connection, std::move(generation), std::move(filter), std::move(done));
}

void tls_connect(Connection& connection, const TlsClientContext& context, std::string host,
                 Callback<void(Connection&, Error)> done) {
  check_context(bool(context));
  auto generation = tls::ContextAccess::for_handshake(context, connection.loop());
  auto filter = tls::make_client_filter(generation, std::move(host), connection.peer_endpoint());
  if (filter == nullptr) throw std::bad_alloc();
  begin(connection, std::move(generation), std::move(filter), std::move(done));
}

}  // namespace tambour
