// Replaces this layer if the library is built without TLS (TAMBOUR_TLS=OFF).
#include <utility>

#include <tambour/tls/early_data.h>
#include <tambour/tls/handshake.h>

#include "tls/message_digest.h"
#include "tls_contract/context_state.h"

namespace tambour::tls {
namespace {

std::unexpected<Failure> not_supported() {
  const Error error = ErrorCode::not_supported;
  return std::unexpected(Failure{.error = error, .message = error.message()});
}

Result<> refuse() { return std::unexpected<Error>(ErrorCode::not_supported); }

}  // namespace

Result<ServerContext, Failure> ServerContext::create(ServerOptions /*options*/) {
  return not_supported();
}
Result<void, Failure> ServerContext::reload() const { return not_supported(); }
Result<void, Failure> ServerContext::reload(ServerOptions /*options*/) const {
  return not_supported();
}
Result<ClientContext, Failure> ClientContext::create(ClientOptions /*options*/) {
  return not_supported();
}
Result<ClientContext, Failure> ClientContext::with_alpn(
    std::vector<std::string> /*protocols*/) const {
  return not_supported();
}
std::vector<std::string> ServerContext::alpn() const { return {}; }
std::vector<std::string> ClientContext::alpn() const { return {}; }
Result<void, Failure> ClientContext::reload() const { return not_supported(); }
Result<void, Failure> ClientContext::reload(ClientOptions /*options*/) const {
  return not_supported();
}

Stats ServerContext::stats() const { return {}; }
Stats ClientContext::stats() const { return {}; }

Task<Result<>> accept(SocketStream& /*stream*/, ServerContext /*context*/) { co_return refuse(); }
Task<Result<>> accept(SocketStream& /*stream*/, const Buffer& /*plaintext*/,
                      ServerContext /*context*/) {
  co_return refuse();
}
Task<Result<>> connect(SocketStream& /*stream*/, ClientContext /*context*/, Host /*host*/) {
  co_return refuse();
}
Task<Result<>> connect(SocketStream& /*stream*/, ClientContext /*context*/, Host /*host*/,
                       Replayable /*data*/) {
  co_return refuse();
}
Task<Result<ByteStream>> accept(ByteStream /*stream*/, ServerContext /*context*/) {
  co_return std::unexpected<Error>(ErrorCode::not_supported);
}
Task<Result<ByteStream>> connect(ByteStream /*stream*/, ClientContext /*context*/, Host /*host*/) {
  co_return std::unexpected<Error>(ErrorCode::not_supported);
}
Task<Result<>> accept_early(SocketStream& /*stream*/, ServerContext /*context*/) {
  co_return refuse();
}
/// No stream uses TLS.
Task<Result<>> complete_handshake(SocketStream& /*stream*/) { co_return Result<>(); }
Task<Result<std::size_t>> read_early(SocketStream& /*stream*/, Buffer& /*into*/) { co_return 0; }
Task<Result<>> connect(SocketStream& /*stream*/, const Buffer& /*plaintext*/,
                       ClientContext /*context*/, Host /*host*/) {
  co_return refuse();
}

void accept(Connection& connection, const ServerContext& /*context*/,
            Callback<void(Connection&, Error)> done) {
  connection.close();
  if (done) done(connection, ErrorCode::not_supported);
}
void connect(Connection& connection, const ClientContext& /*context*/, Host /*host*/,
             Callback<void(Connection&, Error)> done) {
  connection.close();
  if (done) done(connection, ErrorCode::not_supported);
}

namespace detail {

std::optional<std::string> digest_of(MessageDigest /*algorithm*/, const Buffer& /*bytes*/) {
  return std::nullopt;
}

}  // namespace detail
}  // namespace tambour::tls
