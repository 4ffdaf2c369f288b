// Early data of TLS 1.3 (0-RTT): bytes that a client sends with the first packets of a resumed
// session, so that the server can answer one round trip earlier.
//
// An attacker who has recorded these packets can send them again. A server accepts a ClientHello
// once, and only within 11 seconds, but the attacker may deliver the recorded one first, and the
// client then sends its request again. So early data must be idempotent: a client sends only data
// that it has marked as replayable, and a server must act only on requests whose repetition does
// no harm. Early data also lacks forward secrecy.
//
// Servers set tls::ServerOptions::early_data_bytes_max and ListenOptions::tls_early_data.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>
#include <tambour/tls/context.h>
#include <tambour/tls/handshake.h>

#pragma GCC visibility push(default)

namespace tambour::tls {

/// Bytes whose repeated processing by the server does no harm.
struct Replayable {
  Replayable() = default;
  /// `text`: the bytes.
  explicit Replayable(std::string text) noexcept : bytes(std::move(text)) {}

  std::string bytes{};
};

/// Like tls::connect(), and sends `data` as early data if a session with the server permits it, and
/// the client offers the protocol (ALPN) that the session has negotiated: RFC 8446, section 4.2.10.
/// tls::Session::early_data() then says whether the server has accepted the data: the bytes are the
/// first of the stream. Otherwise the server has not seen them; it is up to the caller to write
/// them, unless tls::Session::alpn() is another protocol than theirs:
///
///   if (auto done = co_await tls::connect(stream, tls, host, tls::Replayable(request)); !done) ...
///   if (stream.tls()->early_data() != tls::EarlyData::accepted) co_await stream.write(request);
///
/// If the handshake fails, the server may have processed the data.
[[nodiscard]] Task<Result<>> connect(SocketStream& stream, ClientContext context, Host host,
                                     Replayable data);

/// Like tls::accept(), but also completes when early data has been received, as servers with
/// ListenOptions::tls_early_data do. Until tls::Session::is_handshake_complete(), the stream can be
/// read, written and closed; shutdown_write() fails with EBUSY, and the stream must not become a
/// Connection.
[[nodiscard]] Task<Result<>> accept_early(SocketStream& stream, ServerContext context);

/// Waits for early data, appends it to `into` and returns its size. It may be a replay as long as
/// tls::Session::is_handshake_complete() returns false. Returns 0 if there is no more; the
/// handshake is complete then. Fails like tls::accept(). On other streams, and on clients, returns
/// 0.
///
/// Stream::read() is always safe: it completes the handshake before it returns bytes, also early
/// data that this function has not returned. Only this function and tls::complete_handshake() have
/// the time limit of tls::Options::handshake_timeout; limit a read with timeout().
[[nodiscard]] Task<Result<std::size_t>> read_early(SocketStream& stream, Buffer& into);

/// Waits until the handshake is complete: nothing that was received is a replay then. A handler
/// calls it before it acts on early data that is not idempotent, and before shutdown_write(). Fails
/// like tls::accept(). On other streams, returns at once.
///
///   if (!co_await tls::read_early(stream, request)) co_return;
///   if (!is_idempotent(request) && !co_await tls::complete_handshake(stream)) co_return;
[[nodiscard]] Task<Result<>> complete_handshake(SocketStream& stream);

}  // namespace tambour::tls

#pragma GCC visibility pop
