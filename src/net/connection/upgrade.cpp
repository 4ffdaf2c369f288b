// Handshakes of TLS on a connection that is open already.
#include "net/connection/upgrade.h"

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "io/transport.h"
#include "net/connection/parts.h"
#include "net/outcome.h"

namespace tambour::detail::net {

ConnectionCore::Upgrade::Upgrade(ConnectionCore& connection, Duration limit,
                                 Callback<void(Connection&, Error)> callback)
    : done(std::move(callback)), handshake(connection.loop(), limit, [&connection] {
        connection.call_guarded([&connection] { connection.end_handshake(); });
      }) {}

void ConnectionUpgrade::begin(Connection& upgraded, OwnedPointer<io::TransportFilter> filter,
                              Duration limit, Callback<void(Connection&, Error)> done) {
  ConnectionCore& connection = ConnectionCore::of(upgraded);
  connection.check_thread("tls");
  if (connection.ended_) return;
  base::check(
      connection.kind_ == io::TransportKind::socket && !connection.moving_,
      "tls::accept() or tls::connect() was called for a connection that uses TLS already, is "
      "moving to another loop, or is not a socket");
  EventLoop& loop = connection.loop();
  ConnectionCore::Extras& extras = connection.extras();
  extras.upgrade = std::make_unique<ConnectionCore::Upgrade>(connection, limit, std::move(done));
  // Bytes of plaintext must neither be taken for bytes of TLS, nor be sent among them.
  if (!connection.input_.empty()) extras.upgrade->handshake.fail(filter->unread_input());
  if (!extras.output.empty()) extras.upgrade->handshake.fail(-EBUSY);
  extras.filter = std::move(filter);
  connection.kind_ = io::TransportKind::tls;
  connection.handshaking_ = true;
  connection.watch();
  loop::core_of(loop).queue(connection);
}

void ConnectionCore::continue_handshake() {
  if (extras_->upgrade->handshake.advance(transport()) != Events::none) return watch();
  end_handshake();
}

void ConnectionCore::end_handshake() {
  handshaking_ = false;
  const auto upgrade = std::move(extras_->upgrade);
  upgrade->handshake.stop();
  const int error = -upgrade->handshake.outcome();
  if (error != 0) {
    end(error);
  } else {
    watch();
    if (unsent_bytes() > 0) start_write_timeout();  // Tickets.
    if (!ended_) read_again_if_possible();
  }
  if (upgrade->done) upgrade->done(*this, error != 0 ? error_of(error) : Error());
  finish_output();
}

}  // namespace tambour::detail::net
