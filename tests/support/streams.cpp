// Opens listeners, connections and pairs of streams, over the transport of the test.
#include "support/streams.h"

#include <array>
#include <cstddef>

#include <tambour/loop/event_loop.h>
#include <tambour/net/unix_stream.h>
#include <tambour/task/scope.h>
#include <tambour/tls/handshake.h>

namespace tambour::test {
namespace {

/// The far end receives a byte after the handshake: the tickets of the server precede it.
constexpr std::string_view last_byte = "x";

Task<> begin_server(SocketStream& stream) {
  const auto done = co_await tls::accept(stream, transport().server);
  EXPECT_TRUE(done) << done.error().message();
  if (!done) co_return;
  EXPECT_TRUE(co_await stream.write(last_byte));
}

Task<> begin_client(SocketStream& stream) {
  const auto done = co_await secure(stream);
  EXPECT_TRUE(done) << done.error().message();
  if (!done) co_return;
  std::array<std::byte, last_byte.size()> place;
  EXPECT_EQ(co_await stream.read(place), place.size());
}

}  // namespace

Transport& transport() {
  static Transport of_the_running_test;
  return of_the_running_test;
}

StreamEnds open_stream_ends(EventLoop& loop) {
  auto [near, far] = or_throw(UnixStream::pair(loop), "socketpair");
  StreamEnds ends{std::move(near), std::move(far)};
  if (!transport().server) return ends;
  TaskScope scope(loop);
  scope.spawn(begin_server(ends.near));
  scope.spawn(begin_client(ends.far));
  while (!scope.empty()) loop.run_once();
  return ends;
}

Task<Result<>> secure(SocketStream& stream) {
  if (!transport().client) co_return Result<>();
  co_return co_await tls::connect(stream, transport().client, "localhost");
}

Task<> finish(SocketStream& stream) {
  EXPECT_TRUE(co_await stream.shutdown_write());
  for (;;) {
    Buffer rest;
    const auto got = co_await stream.read(rest);
    EXPECT_TRUE(got) << got.error().message();
    if (!got || *got == 0) break;
  }
  stream.close();
}

Task<> expect_closed(Stream& stream) {
  Buffer nothing;
  const auto got = co_await stream.read(nothing);
  EXPECT_EQ(got ? Error() : got.error(), error_of_close());
  EXPECT_TRUE(nothing.empty());
}

}  // namespace tambour::test
