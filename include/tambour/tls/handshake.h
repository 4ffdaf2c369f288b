// TLS handshakes on streams that are already connected.
//
// Servers perform them if ListenOptions::tls is set, and connect() if ConnectOptions::tls is set.
// The functions below serve other streams, and protocols that begin without TLS (STARTTLS).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/byte_stream.h>
#include <tambour/net/connection.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>
#include <tambour/tls/context.h>  // IWYU pragma: export
#include <tambour/tls/error.h>    // IWYU pragma: export
#include <tambour/tls/session.h>  // IWYU pragma: export

#pragma GCC visibility push(default)

namespace tambour::tls {

/// The server that a client wants to reach:
///
///   auto done = co_await tls::connect(stream, tls, "example.com");
///   auto done = co_await tls::connect(tunnel, tls, {"example.com", 443});
///
/// Not an aggregate, because GCC 12 destroys an aggregate in braces inside co_await twice.
struct Host {
  // NOLINTBEGIN(google-explicit-constructor): a name is a host.
  /// `server_port` 0: that of the peer; see `port`.
  Host(std::string host_name, std::uint16_t server_port = 0) noexcept
      : name(std::move(host_name)), port(server_port) {}
  Host(const char* host_name, std::uint16_t server_port = 0) : name(host_name), port(server_port) {}
  // NOLINTEND(google-explicit-constructor)

  /// A name or an IP address, which the certificate of the server must prove.
  std::string name;
  /// Tells the servers of a name apart: a session is resumed only with the same name and port. 0:
  /// that of the peer, if the stream is a socket without TLS; otherwise nothing is resumed. In a
  /// tunnel through a proxy the peer is the proxy: give the port of the server then.
  std::uint16_t port;
};

/// Performs the handshake of a server. `stream` then transfers its bytes through TLS: reads, writes
/// and everything built on them work as before, and tls() returns the session. Otherwise `stream`
/// is closed.
///
/// For STARTTLS, `plaintext` is the buffer into which the caller has read from `stream`. Bytes in
/// it were sent before TLS began, by the client or by an attacker; they must not be treated as if
/// they came through TLS, so the function fails with tls::ErrorCode::unread_plaintext
/// (CVE-2011-0411).
///
/// No other task may use `stream` meanwhile. Fails with a tls::ErrorCode, with the errors of the
/// socket, with ETIMEDOUT after tls::Options::handshake_timeout, and with ECANCELED. `stream` must
/// be open. Throws std::bad_alloc before the handshake begins; `stream` is unchanged then.
///
/// If `stream` uses TLS already, the new session is carried inside the former one, as through a
/// proxy that is reached with TLS; tls() returns the new session. Fails with EALREADY if there are
/// four sessions already.
[[nodiscard]] Task<Result<>> accept(SocketStream& stream, ServerContext context);
[[nodiscard]] Task<Result<>> accept(SocketStream& stream, const Buffer& plaintext,
                                    ServerContext context);

/// Performs the handshake of a client. The server must prove, with its certificate, that it is
/// `host`. A name is also sent to it (SNI). Otherwise like tls::accept(). Fails with EINVAL if
/// `host` is neither a name nor an address: if it is empty or begins with a dot, for example.
[[nodiscard]] Task<Result<>> connect(SocketStream& stream, ClientContext context, Host host);
[[nodiscard]] Task<Result<>> connect(SocketStream& stream, const Buffer& plaintext,
                                     ClientContext context, Host host);

/// The same for a byte stream of any kind: the result transfers its bytes through TLS. The stream
/// is closed if the handshake fails. Bytes that a ByteStream has received already belong to the
/// handshake, because it is the caller who decides that TLS begins with them.
[[nodiscard]] Task<Result<ByteStream>> accept(ByteStream stream, ServerContext context);
[[nodiscard]] Task<Result<ByteStream>> connect(ByteStream stream, ClientContext context, Host host);

/// The same for an open connection, for STARTTLS. `done` is invoked in a later iteration, or not at
/// all if the connection ends before. If it gets an error, on_close follows with the same error;
/// otherwise the connection uses TLS, and Connection::tls() returns the session. What is sent
/// meanwhile is sent through TLS.
///
/// Call it after the last bytes of plaintext have been read and sent. If bytes are left in the
/// buffer of on_message, fails with tls::ErrorCode::unread_plaintext. If unsent() is not zero,
/// fails with EBUSY: call it in on_write_complete then. Connection::move_to() must not be called
/// before `done` is invoked. `connection` must not use TLS yet. Throws std::bad_alloc.
void accept(Connection& connection, const ServerContext& context,
            Callback<void(Connection&, Error)> done);
/// Fails with EINVAL if `host` is neither a name nor an address.
void connect(Connection& connection, const ClientContext& context, Host host,
             Callback<void(Connection&, Error)> done);

}  // namespace tambour::tls

#pragma GCC visibility pop
