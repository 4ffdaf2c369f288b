// Closing a descriptor with a pending operation takes effect at once, on every backend, without
// another iteration of the loop: the peer sees EOF, and the port is free.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::closing_test {
namespace {

/// Returns whether reading would return 0 now.
bool sees_end(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

class Closing : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  struct Ends {
    UnixStream near;
    test::UniqueFd far;
  };
  Ends open_pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    return {UnixStream(loop(), fds[0]), test::UniqueFd(fds[1])};
  }

  static Task<> read_one(UnixStream& from) {
    std::array<std::byte, 16> bytes;
    static_cast<void>(co_await from.read(bytes));
  }
};

TAMBOUR_ON_EVERY_BACKEND(Closing);

TEST_P(Closing, the_peer_sees_the_end_of_a_stream_after_a_read) {
  Ends pair = open_pair();
  TaskScope scope(loop());
  scope.spawn(read_one(pair.near));
  run_iterations();
  EXPECT_FALSE(sees_end(pair.far.get()));
  pair.near.close();
  EXPECT_TRUE(sees_end(pair.far.get()));
}

TEST_P(Closing, the_peer_sees_the_end_after_run_has_returned) {
  Ends pair = open_pair();
  spawn(loop(), [](EventLoop& own, UnixStream stream) -> Task<> {
    static_cast<void>(co_await timeout(std::chrono::milliseconds(1), read_one(stream)));
    own.stop();
  }(loop(), std::move(pair.near)));
  loop().run();
  EXPECT_TRUE(sees_end(pair.far.get()));
}

TEST_P(Closing, the_peer_sees_the_end_of_a_connection) {
  Ends pair = open_pair();
  bool closed = false;
  const auto on_close = [&](Connection&, Error) {
    closed = true;
    loop().stop();
  };
  Connection::start(std::move(pair.near), std::make_shared<const ConnectionCallbacks>(
                                              ConnectionCallbacks{.on_close = on_close}));
  run_iterations();
  ::shutdown(pair.far.get(), SHUT_WR);
  loop().run();
  EXPECT_TRUE(closed);
  EXPECT_TRUE(sees_end(pair.far.get()));
}

TEST_P(Closing, the_port_of_a_socket_that_received_can_be_bound_again) {
  auto first = UdpSocket::bind(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(first);
  const Endpoint at = first->local_endpoint().value();
  ASSERT_TRUE(first->serve({}));
  run_iterations();
  first->close();
  EXPECT_TRUE(UdpSocket::bind(loop(), at));
}

TEST_P(Closing, the_port_of_a_server_can_be_bound_again) {
  std::optional<TcpServer> server(TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value());
  const Endpoint at = server->endpoint();
  server->serve(ConnectionCallbacks{});
  run_iterations();
  server.reset();
  EXPECT_TRUE(TcpServer::listen(loop(), at));
}

TEST_P(Closing, a_descriptor_whose_watcher_was_stopped_inside_run_is_free_when_run_returns) {
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

TEST_P(Closing, a_descriptor_whose_watcher_was_stopped_outside_run_is_free_at_once) {
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

TEST_P(Closing, a_socket_may_be_closed_after_its_loop) {
  Ends pair = open_pair();
  std::optional<UnixStream> late;
  {
    EventLoop other;
    late.emplace(other, ::dup(pair.far.get()));
  }
  late.reset();
  EXPECT_FALSE(sees_end(pair.far.get()));
}

}  // namespace
}  // namespace tambour::closing_test
