// Helpers for stream tests: connected pairs, echo servers and clients.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/buffer.h>
#include <tambour/endpoint.h>
#include <tambour/socket_stream.h>
#include <tambour/task.h>
#include <tambour/tcp.h>

namespace tambour::test {

/// The two ends of a connection.
struct StreamEnds {
  SocketStream near, far;
};

inline StreamEnds open_stream_ends(EventLoop& loop) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
    throw std::system_error(system_error(errno));
  return {SocketStream(loop, fds[0]), SocketStream(loop, fds[1])};
}

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
  auto stream = co_await S::connect(to);
  EXPECT_TRUE(stream) << to.to_string();
  if (!stream) co_return;
  EXPECT_EQ(stream->peer_endpoint(), to);
  co_await expect_echo(*stream, text);
}

/// Opens `count` connections to `to`.
template <class S = TcpStream>
Task<> connect_all(Endpoint to, int count, std::vector<S>& all) {
  for (int i = 0; i < count; ++i) {
    auto stream = co_await S::connect(to);
    EXPECT_TRUE(stream);
    if (stream) all.push_back(std::move(*stream));
  }
}

}  // namespace tambour::test
