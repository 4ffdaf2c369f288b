// TLS handshakes on streams that are already connected.
//
// Servers perform them if ListenOptions::tls is set, and connect() if ConnectOptions::tls is set.
// The functions below serve other streams, and protocols that begin without TLS (STARTTLS).
#pragma once

#include <string>

#include <tambour/buffer.h>
#include <tambour/byte_stream.h>
#include <tambour/callback.h>
#include <tambour/connection.h>
#include <tambour/result.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>
#include <tambour/tls_context.h>  // IWYU pragma: export
#include <tambour/tls_error.h>    // IWYU pragma: export
#include <tambour/tls_session.h>  // IWYU pragma: export

#pragma GCC visibility push(default)

namespace tambour {

/// Performs the handshake of a server. `stream` then transfers its bytes through TLS: reads, writes
/// and everything built on them work as before, and tls() returns the session. Otherwise `stream`
/// is closed.
///
/// For STARTTLS, `plaintext` is the buffer into which the caller has read from `stream`. Bytes in
/// it were sent before TLS began, by the client or by an attacker; they must not be treated as if
/// they came through TLS, so the function fails with TlsError::unread_plaintext (CVE-2011-0411).
///
/// No other task may use `stream` meanwhile. Fails with a TlsError, with the errors of the socket,
/// with ETIMEDOUT after TlsOptions::handshake_timeout, and with ECANCELED. `stream` must be open.
/// Throws std::bad_alloc before the handshake begins; `stream` is unchanged then.
///
/// If `stream` uses TLS already, the new session is carried inside the former one, as through a
/// proxy that is reached with TLS; tls() returns the new session. Fails with EALREADY if there are
/// four sessions already.
[[nodiscard]] Task<Result<>> tls_accept(SocketStream& stream, TlsServerContext context);
[[nodiscard]] Task<Result<>> tls_accept(SocketStream& stream, const Buffer& plaintext,
                                        TlsServerContext context);

/// Performs the handshake of a client. `host` is the name or the IP address of the server: the
/// server must prove, with its certificate, that it is this host. A name is also sent to it (SNI).
/// Otherwise like tls_accept(). Fails with EINVAL if `host` is neither a name nor an address: if it
/// is empty or begins with a dot, for example.
[[nodiscard]] Task<Result<>> tls_connect(SocketStream& stream, TlsClientContext context,
                                         std::string host);
[[nodiscard]] Task<Result<>> tls_connect(SocketStream& stream, const Buffer& plaintext,
                                         TlsClientContext context, std::string host);

/// The same for a byte stream of any kind: the result transfers its bytes through TLS. The stream
/// is closed if the handshake fails. Bytes that a ByteStream has received already belong to the
/// handshake, because it is the caller who decides that TLS begins with them.
[[nodiscard]] Task<Result<ByteStream>> tls_accept(ByteStream stream, TlsServerContext context);
[[nodiscard]] Task<Result<ByteStream>> tls_connect(ByteStream stream, TlsClientContext context,
                                                   std::string host);

/// The same for an open connection, for STARTTLS. `done` is invoked in a later iteration, or not at
/// all if the connection ends before. If it gets an error, on_close follows with the same error;
/// otherwise the connection uses TLS, and Connection::tls() returns the session. What is sent
/// meanwhile is sent through TLS.
///
/// Call it after the last bytes of plaintext have been read and sent. If bytes are left in the
/// buffer of on_message, fails with TlsError::unread_plaintext. If unsent() is not zero, fails with
/// EBUSY: call it in on_write_complete then. Connection::move_to() must not be called before `done`
/// is invoked. `connection` must not use TLS yet. Throws std::bad_alloc.
void tls_accept(Connection& connection, const TlsServerContext& context,
                Callback<void(Connection&, Error)> done);
/// Fails with EINVAL if `host` is neither a name nor an address.
void tls_connect(Connection& connection, const TlsClientContext& context, std::string host,
                 Callback<void(Connection&, Error)> done);

}  // namespace tambour

#pragma GCC visibility pop
