// Helpers for stream tests: connected pairs, echo servers and clients, over the transport of the
// running test (transport.h).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/listen_options.h>
#include <tambour/net/socket_stream.h>
#include <tambour/net/tcp.h>
#include <tambour/task/task.h>

#include "support/transport.h"

namespace tambour::test {

/// The two ends of a connection.
struct StreamEnds {
  SocketStream near, far;
};

/// Over TLS, `near` is the server, and `far` has received everything that belongs to the handshake.
/// Runs the loop then, so it must not be called in a callback.
StreamEnds open_stream_ends(EventLoop& loop);

template <class Server = TcpServer>
Result<Server> listen(EventLoop& loop, const Endpoint& at = Endpoint::loopback_v4(0),
                      ListenOptions options = {}) {
  options.tls = transport().server;
  return Server::listen(loop, at, options);
}

/// Over TLS, performs the handshake of a client.
Task<Result<>> secure(SocketStream& stream);

/// Connects to a server of listen().
template <class S = TcpStream>
Task<Result<S>> connect_to(Endpoint to) {
  auto stream = co_await S::connect(to);
  if (!stream) co_return stream;
  if (const auto secured = co_await secure(*stream); !secured)
    co_return std::unexpected(secured.error());
  co_return stream;
}

/// Shuts down the write side, receives the rest, which must end in order, and closes. A client that
/// closes before may lose its last bytes over TLS: docs/tls.md, "The end of a stream".
Task<> finish(SocketStream& stream);

/// What a stream or connection reports when its peer has closed without shutdown_write().
inline Error error_of_close() { return transport().server ? tls::ErrorCode::truncated : Error(); }

/// Expects no more bytes, and that the peer closes without shutdown_write().
Task<> expect_closed(Stream& stream);

/// Echoes bytes until the end of the stream.
template <class S>
Task<> echo(S peer) {
  Buffer buffer;
  for (;;) {
    const auto got = co_await peer.read(buffer);
    if (!got || *got == 0) co_return;
    if (!co_await peer.write(buffer)) co_return;
  }
}

/// Sends `text` and expects its echo.
template <class S>
Task<> expect_echo(S& stream, std::string_view text) {
  EXPECT_TRUE(co_await stream.write(text));
  Buffer back;
  while (back.size() < text.size()) {
    const auto got = co_await stream.read(back);
    EXPECT_TRUE(got && *got > 0);
    if (!got || *got == 0) co_return;
  }
  EXPECT_EQ(back, text);
}

/// Connects to `to`, expects it as the peer's endpoint, sends `text` and expects its echo.
template <class S = TcpStream>
Task<> expect_echo_from(Endpoint to, std::string_view text = "hello") {
  auto stream = co_await connect_to<S>(to);
  EXPECT_TRUE(stream) << to.to_string();
  if (!stream) co_return;
  EXPECT_EQ(stream->peer_endpoint(), to);
  EXPECT_EQ(stream->tls() != nullptr, bool(transport().client));
  co_await expect_echo(*stream, text);
}

/// Opens `count` connections to `to`.
template <class S = TcpStream>
Task<> connect_all(Endpoint to, int count, std::vector<S>& all) {
  for (int i = 0; i < count; ++i) {
    auto stream = co_await connect_to<S>(to);
    EXPECT_TRUE(stream);
    if (stream) all.push_back(std::move(*stream));
  }
}

}  // namespace tambour::test
