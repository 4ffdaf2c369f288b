// TCP-specific behaviour of streams.
#include <tambour/net/tcp.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connection.h>

#include "support/on_every_backend.h"

namespace tambour::tcp_test {
namespace {

/// Returns whether Nagle's algorithm delays small messages; -1 on an error.
int waits_for_more(int fd) {
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size) != 0) return -1;
  return no_delay == 0 ? 1 : 0;
}

class Tcp : public test::OnEveryBackend {
 protected:
  /// Returns waits_for_more() of both ends of a connection to the server.
  std::vector<int> delays_of_new_connection(TcpServer& server) {
    spawn(loop(), [](Endpoint to, std::vector<int>& all) -> Task<> {
      auto stream = co_await TcpStream::connect(to);
      EXPECT_TRUE(stream);
      all.push_back(waits_for_more(stream->fd()));
    }(server.endpoint(), delays));
    EXPECT_TRUE(run_until([this] { return delays.size() == 2; }));
    return std::exchange(delays, {});
  }

  Task<> note(TcpStream stream) {
    delays.push_back(waits_for_more(stream.fd()));
    co_return;
  }

  std::vector<int> delays;
};

TAMBOUR_ON_EVERY_BACKEND(Tcp);

const std::vector<int> neither{0, 0};

TEST_P(Tcp, small_messages_of_tasks_are_not_delayed) {
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  server->serve([this](TcpStream stream) { return note(std::move(stream)); });
  EXPECT_EQ(delays_of_new_connection(*server), neither);
}

TEST_P(Tcp, small_messages_of_connections_are_not_delayed) {
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v6(0));
  ASSERT_TRUE(server);
  server->serve({.on_connection = [this](Connection& connection) {
    delays.push_back(waits_for_more(connection.fd()));
  }});
  EXPECT_EQ(delays_of_new_connection(*server), neither);
}

TEST_P(Tcp, small_messages_are_not_delayed_with_an_external_listener) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Endpoint at = Endpoint::loopback_v4(0);
  ASSERT_EQ(::bind(listener.get(), at.data(), at.size()), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  auto server = TcpServer::adopt(loop(), std::move(listener));
  ASSERT_TRUE(server);
  server->serve([this](TcpStream stream) { return note(std::move(stream)); });
  EXPECT_EQ(delays_of_new_connection(*server), neither);
}

TEST_P(Tcp, small_messages_of_clients_that_connected_before_the_server_are_not_delayed) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Endpoint at = Endpoint::loopback_v4(0);
  ASSERT_EQ(::bind(listener.get(), at.data(), at.size()), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  const UniqueFd early(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(early.get(), reinterpret_cast<sockaddr*>(&bound), size), 0);
  auto server = TcpServer::adopt(loop(), std::move(listener));
  ASSERT_TRUE(server);
  server->serve([this](TcpStream stream) { return note(std::move(stream)); });
  EXPECT_TRUE(run_until([this] { return !delays.empty(); }));
  EXPECT_EQ(delays, std::vector<int>{0});
}

TEST_P(Tcp, sending_no_bytes_succeeds_at_once) {
  auto server = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
  ASSERT_TRUE(server);
  bool sent = false;
  spawn(loop(), [](Endpoint to, bool& done) -> Task<> {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream);
    Buffer nothing;
    EXPECT_TRUE(co_await stream->write(nothing));
    EXPECT_TRUE(co_await stream->write(""));
    stream->close();
    const auto closed = co_await stream->write(nothing);
    EXPECT_FALSE(closed);
    done = true;
  }(server->endpoint(), sent));
  EXPECT_TRUE(run_until([&] { return sent; }));
}

TEST_P(Tcp, the_program_can_enable_the_delay) {
  TcpStream stream(loop(), ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(waits_for_more(stream.fd()), 0);
  EXPECT_TRUE(stream.set_no_delay(false));
  EXPECT_EQ(waits_for_more(stream.fd()), 1);
}

}  // namespace
}  // namespace tambour::tcp_test
