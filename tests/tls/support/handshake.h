// One handshake between a server and a client context.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/streams.h"

namespace tambour::test {

/// What a client sees of a server.
struct Seen {
  Error error;
  std::string subject;
  bool resumed = false;
};

inline Seen handshake(EventLoop& loop, const tls::ServerContext& server,
                      const tls::ClientContext& client, const std::string& host) {
  test::StreamEnds ends = test::open_stream_ends(loop);
  Seen seen;
  TaskScope scope(loop);
  scope.spawn([](SocketStream& stream, tls::ServerContext tls) -> Task<> {
    if (!co_await tls::accept(stream, tls)) co_return;
    static_cast<void>(co_await stream.write("x"));
  }(ends.far, server));
  scope.spawn(
      [](SocketStream& stream, tls::ClientContext tls, std::string name, Seen& into) -> Task<> {
        const auto done = co_await tls::connect(stream, tls, name);
        if (!done) {
          into.error = done.error();
          co_return;
        }
        into.subject = stream.tls()->peer_certificate()->subject;
        into.resumed = stream.tls()->is_resumed();
        Buffer buffer;
        EXPECT_EQ(co_await stream.read(buffer), 1U);
      }(ends.near, client, host, seen));
  while (!scope.empty()) loop.run_once();
  return seen;
}

}  // namespace tambour::test
