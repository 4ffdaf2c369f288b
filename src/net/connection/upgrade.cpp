// Handshakes of TLS on a connection that is open already.
#include "net/connection/upgrade.h"

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "io/transport.h"
#include "net/connection/parts.h"
#include "net/outcome.h"

namespace tambour::detail::net {

void ConnectionUpgrade::begin(Connection& upgraded, std::unique_ptr<io::TransportFilter> filter,
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
  extras.handshake = std::make_unique<ConnectionCore::Handshake>(
      std::move(done), Timer(loop, [&connection] {
        connection.call_guarded([&connection] { connection.end_handshake(ETIMEDOUT); });
      }));
  if (limit > Duration::zero()) extras.handshake->limit.start(limit);
  // Bytes of plaintext must neither be taken for bytes of TLS, nor be sent among them.
  if (!extras.output.empty()) extras.handshake->error = EBUSY;
  if (!connection.input_.empty()) extras.handshake->error = -filter->unread_input();
  extras.filter = std::move(filter);
  connection.kind_ = io::TransportKind::tls;
  connection.handshaking_ = true;
  connection.watch();
  loop::core_of(loop).queue(connection);
}

void ConnectionCore::continue_handshake() {
  if (extras_->handshake->error != 0) return end_handshake(extras_->handshake->error);
  const std::int32_t answer = transport().handshake();
  if (answer == -EAGAIN || answer == -EINPROGRESS) return watch();
  end_handshake(-answer);
}

/// `error` is 0 if the handshake is complete.
void ConnectionCore::end_handshake(int error) {
  handshaking_ = false;
  const auto handshake = std::move(extras_->handshake);
  handshake->limit.stop();
  if (error != 0) {
    end(error);
  } else {
    watch();
    read_again_if_possible();
  }
  if (handshake->done) handshake->done(*this, error != 0 ? error_of(error) : Error());
  finish_output();
}

}  // namespace tambour::detail::net
