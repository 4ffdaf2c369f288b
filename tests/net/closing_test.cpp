// Closing a stream or descriptor with a pending operation takes effect at once, over every
// transport, without another iteration of the loop: the peer sees the end, and the port is free.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/peer.h"
#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::closing_test {
namespace {

Task<> read_one(SocketStream& from) {
  std::array<std::byte, 16> bytes;
  static_cast<void>(co_await from.read(bytes));
}

class Closing : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_TRANSPORT(Closing);

TEST_P(Closing, the_peer_sees_the_end_of_a_stream_after_a_read) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  TaskScope scope(loop());
  scope.spawn(read_one(ends.near));
  run_iterations();
  EXPECT_FALSE(test::has_ended(ends.far));
  ends.near.close();
  EXPECT_TRUE(test::has_ended(ends.far));
}

TEST_P(Closing, the_peer_sees_the_end_after_run_has_returned) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  spawn(loop(), [](EventLoop& local, SocketStream stream) -> Task<> {
    static_cast<void>(co_await timeout(std::chrono::milliseconds(1), read_one(stream)));
    local.stop();
  }(loop(), std::move(ends.near)));
  loop().run();
  EXPECT_TRUE(test::has_ended(ends.far));
}

TEST_P(Closing, the_peer_sees_the_end_of_a_connection) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  bool closed = false;
  const auto on_close = [&](Connection&, Error) {
    closed = true;
    loop().stop();
  };
  Connection::start(std::move(ends.near), std::make_shared<const ConnectionCallbacks>(
                                              ConnectionCallbacks{.on_close = on_close}));
  run_iterations();
  test::shut_down_now(ends.far);
  loop().run();
  EXPECT_TRUE(closed);
  EXPECT_TRUE(test::has_ended(ends.far));
}

TEST_P(Closing, the_port_of_a_server_can_be_bound_again) {
  std::optional<TcpServer> server(test::listen(loop()).value());
  const Endpoint at = server->endpoint();
  server->serve(ConnectionCallbacks{});
  run_iterations();
  server.reset();
  EXPECT_TRUE(test::listen(loop(), at));
}

/// What streams have no part in.
class ClosingDescriptors : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(ClosingDescriptors);

TEST_P(ClosingDescriptors, the_port_of_a_socket_that_received_can_be_bound_again) {
  auto first = UdpSocket::bind(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(first);
  const Endpoint at = first->local_endpoint().value();
  ASSERT_TRUE(first->serve({}));
  run_iterations();
  first->close();
  EXPECT_TRUE(UdpSocket::bind(loop(), at));
}

TEST_P(ClosingDescriptors,
       a_descriptor_whose_watcher_was_stopped_inside_run_is_free_when_run_returns) {
  test::Ends pipe = test::open_pipe();
  std::optional<FdWatcher> watcher(std::in_place, loop(), pipe.near.get(), Events::read,
                                   [](Events) {});
  ASSERT_TRUE(watcher->start());
  run_iterations();
  loop().post([&] {
    watcher.reset();
    pipe.near.reset(-1);
    loop().stop();
  });
  loop().run();
  pollfd polled{.fd = pipe.far.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 1);
  EXPECT_NE(polled.revents & POLLERR, 0) << "the reading end is still open";
}

TEST_P(ClosingDescriptors, a_descriptor_whose_watcher_was_stopped_outside_run_is_free_at_once) {
  test::Ends pipe = test::open_pipe();
  std::optional<FdWatcher> watcher(std::in_place, loop(), pipe.near.get(), Events::read,
                                   [](Events) {});
  ASSERT_TRUE(watcher->start());
  run_iterations();
  watcher->stop();
  pipe.near.reset(-1);
  pollfd polled{.fd = pipe.far.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 1);
  EXPECT_NE(polled.revents & POLLERR, 0) << "the reading end is still open";
}

TEST_P(ClosingDescriptors, a_socket_may_be_closed_after_its_loop) {
  const test::Ends pair = test::open_socketpair();
  std::optional<UnixStream> late;
  {
    EventLoop other;
    late.emplace(other, ::dup(pair.far.get()));
  }
  late.reset();
  pollfd polled{.fd = pair.far.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 1);
  EXPECT_EQ(polled.revents, POLLOUT) << "it was closed too";
}

}  // namespace
}  // namespace tambour::closing_test
