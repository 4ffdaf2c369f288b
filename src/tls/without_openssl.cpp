// Replaces this layer if the library is built without TLS (TAMBOUR_TLS=OFF).
#include <utility>

#include <tambour/tls.h>
#include <tambour/tls_early_data.h>

#include "tls/handshake.h"
#include "tls/resumption/saved_ticket_keys.h"

namespace tambour {
namespace tls {
class ServerState {};
class ClientState {};

Task<Result<>> accept(SocketStream& /*stream*/, TlsServerContext /*context*/, Start /*start*/) {
  co_return std::unexpected<Error>(TlsError::not_supported);
}

std::string save_ticket_keys(const TlsServerContext& /*context*/) { return {}; }
}  // namespace tls

namespace {

std::unexpected<TlsFailure> not_supported() {
  const Error error = TlsError::not_supported;
  return std::unexpected(TlsFailure{.error = error, .message = error.message()});
}

Result<> refuse() { return std::unexpected<Error>(TlsError::not_supported); }

}  // namespace

std::expected<TlsServerContext, TlsFailure> TlsServerContext::create(TlsServerOptions /*options*/) {
  return not_supported();
}
std::expected<void, TlsFailure> TlsServerContext::reload() const { return not_supported(); }
std::expected<void, TlsFailure> TlsServerContext::reload(TlsServerOptions /*options*/) const {
  return not_supported();
}
std::expected<TlsClientContext, TlsFailure> TlsClientContext::create(TlsClientOptions /*options*/) {
  return not_supported();
}
std::vector<std::string> TlsServerContext::alpn() const { return {}; }
std::vector<std::string> TlsClientContext::alpn() const { return {}; }
std::expected<void, TlsFailure> TlsClientContext::reload() const { return not_supported(); }
std::expected<void, TlsFailure> TlsClientContext::reload(TlsClientOptions /*options*/) const {
  return not_supported();
}

TlsStats TlsServerContext::stats() const { return {}; }
TlsStats TlsClientContext::stats() const { return {}; }

Task<Result<>> tls_accept(SocketStream& /*stream*/, TlsServerContext /*context*/) {
  co_return refuse();
}
Task<Result<>> tls_accept(SocketStream& /*stream*/, const Buffer& /*plaintext*/,
                          TlsServerContext /*context*/) {
  co_return refuse();
}
Task<Result<>> tls_connect(SocketStream& /*stream*/, TlsClientContext /*context*/,
                           std::string /*host*/) {
  co_return refuse();
}
Task<Result<>> tls_connect(SocketStream& /*stream*/, TlsClientContext /*context*/,
                           std::string /*host*/, TlsReplayable /*data*/) {
  co_return refuse();
}
Task<Result<ByteStream>> tls_accept(ByteStream /*stream*/, TlsServerContext /*context*/) {
  co_return std::unexpected<Error>(TlsError::not_supported);
}
Task<Result<ByteStream>> tls_connect(ByteStream /*stream*/, TlsClientContext /*context*/,
                                     std::string /*host*/) {
  co_return std::unexpected<Error>(TlsError::not_supported);
}
Task<Result<>> tls_accept_early(SocketStream& /*stream*/, TlsServerContext /*context*/) {
  co_return refuse();
}
/// No stream uses TLS.
Task<Result<>> tls_complete_handshake(SocketStream& /*stream*/) { co_return Result<>(); }
Task<Result<std::size_t>> tls_read_early(SocketStream& /*stream*/, Buffer& /*into*/) {
  co_return 0;
}
Task<Result<>> tls_connect(SocketStream& /*stream*/, const Buffer& /*plaintext*/,
                           TlsClientContext /*context*/, std::string /*host*/) {
  co_return refuse();
}

void tls_accept(Connection& connection, const TlsServerContext& /*context*/,
                Callback<void(Connection&, Error)> done) {
  connection.close();
  if (done) done(connection, TlsError::not_supported);
}
void tls_connect(Connection& connection, const TlsClientContext& /*context*/, std::string /*host*/,
                 Callback<void(Connection&, Error)> done) {
  connection.close();
  if (done) done(connection, TlsError::not_supported);
}

}  // namespace tambour
