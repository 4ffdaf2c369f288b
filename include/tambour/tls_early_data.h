// Early data of TLS 1.3 (0-RTT): bytes that a client sends with the first packets of a resumed
// session, so that the server can answer one round trip earlier.
//
// An attacker who has recorded these packets can send them again. A server accepts a ClientHello
// once, and only within 11 seconds, but the attacker may deliver the recorded one first, and the
// client then sends its request again. So early data must be idempotent: a client sends only data
// that it has marked as replayable, and a server must act only on requests whose repetition does
// no harm. Early data also lacks forward secrecy.
//
// Servers set TlsServerOptions::early_data_bytes_max and ListenOptions::tls_early_data.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <tambour/buffer.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>
#include <tambour/tls_context.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Bytes whose repeated processing by the server does no harm.
struct TlsReplayable {
  TlsReplayable() = default;
  explicit TlsReplayable(std::string text) noexcept : bytes(std::move(text)) {}

  std::string bytes{};
};

/// Like tls_connect(), and sends `data` as early data if a session with the server permits it.
/// TlsSession::early_data() then says whether the server has accepted the data: the bytes are the
/// first of the stream. Otherwise the server has not seen them; it is up to the caller to write
/// them, unless TlsSession::alpn() is another protocol than theirs:
///
///   if (auto done = co_await tls_connect(stream, tls, host, TlsReplayable(request)); !done) ...
///   if (stream.tls()->early_data() != TlsEarlyData::accepted) co_await stream.write(request);
///
/// If the handshake fails, the server may have processed the data.
[[nodiscard]] Task<Result<>> tls_connect(SocketStream& stream, TlsClientContext context,
                                         std::string host, TlsReplayable data);

/// Like tls_accept(), but also completes when early data has been received, as servers with
/// ListenOptions::tls_early_data do. Until TlsSession::handshake_complete(), the stream can be
/// read, written and closed; shutdown_write() fails with EBUSY, and the stream must not become a
/// Connection.
[[nodiscard]] Task<Result<>> tls_accept_early(SocketStream& stream, TlsServerContext context);

/// Waits for early data, appends it to `into` and returns its size. It may be a replay as long as
/// TlsSession::handshake_complete() returns false. Returns 0 if there is no more; the handshake is
/// complete then. Fails like tls_accept(). On other streams, and on clients, returns 0.
///
/// Stream::read() is always safe: it completes the handshake before it returns bytes, also early
/// data that this function has not returned. Only this function and tls_complete_handshake() have
/// the time limit of TlsOptions::handshake_timeout; limit a read with timeout().
[[nodiscard]] Task<Result<std::size_t>> tls_read_early(SocketStream& stream, Buffer& into);

/// Waits until the handshake is complete: nothing that was received is a replay then. A handler
/// calls it before it acts on early data that is not idempotent, and before shutdown_write(). Fails
/// like tls_accept(). On other streams, returns at once.
///
///   if (!co_await tls_read_early(stream, request)) co_return;
///   if (!is_idempotent(request) && !co_await tls_complete_handshake(stream)) co_return;
[[nodiscard]] Task<Result<>> tls_complete_handshake(SocketStream& stream);

}  // namespace tambour

#pragma GCC visibility pop
