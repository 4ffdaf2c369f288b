// Handshakes on open connections.
#include <memory>
#include <new>
#include <utility>

#include <tambour/tls/handshake.h>

#include "net/connection/upgrade.h"
#include "tls/handshake_parts.h"

namespace tambour::tls {

namespace {

/// Keeps `generation` and with it its options alive.
void begin(Connection& connection, std::shared_ptr<const detail::Generation> generation,
           std::unique_ptr<detail::Filter> filter, Callback<void(Connection&, Error)> done) {
  const Duration limit = generation->common().handshake_timeout;
  auto reported = [generation = std::move(generation), done = std::move(done)](
                      Connection& local, const Error& error) mutable {
    if (error) detail::report(local.peer_endpoint(), *generation, error, *local.tls());
    if (done) done(local, error);
  };
  detail::net::ConnectionUpgrade::begin(connection, std::move(filter), limit, std::move(reported));
}

}  // namespace

void accept(Connection& connection, const ServerContext& context,
            Callback<void(Connection&, Error)> done) {
  detail::check_context(bool(context));
  auto generation = detail::generation_for_handshake(context, connection.loop());
  auto filter = detail::make_server_filter(generation);
  if (filter == nullptr) throw std::bad_alloc();
  begin(connection, std::move(generation), std::move(filter), std::move(done));
}

void connect(Connection& connection, const ClientContext& context, Host host,
             Callback<void(Connection&, Error)> done) {
  detail::check_context(bool(context));
  auto generation = detail::generation_for_handshake(context, connection.loop());
  auto filter =
      detail::make_client_filter(context, generation, std::move(host), connection.peer_endpoint());
  if (filter == nullptr) throw std::bad_alloc();
  begin(connection, std::move(generation), std::move(filter), std::move(done));
}

}  // namespace tambour::tls
