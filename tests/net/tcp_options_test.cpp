// Keepalive and TCP_USER_TIMEOUT: set by options and setters, and read back from the kernel.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/connector.h>
#include <tambour/net/server_group.h>
#include <tambour/net/tcp.h>
#include <tambour/task/scope.h>
#include <tambour/threads/loop_group.h>

namespace tambour::tcp_options_test {
namespace {

using namespace std::chrono_literals;

int option_of(int fd, int level, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  EXPECT_EQ(::getsockopt(fd, level, option, &value, &size), 0);
  return value;
}

constexpr TcpOptions all{.keepalive_idle = 7s,
                         .keepalive_interval = 1500ms,
                         .keepalive_count = 4,
                         .user_timeout = 12345678ns};

void expect_all(int fd) {
  EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 7);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 2);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 4);
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 13);
}

/// Opens both ends of a connection with these options.
Task<> connect_with(EventLoop& loop, ListenOptions listening, ConnectOptions connecting,
                    std::optional<TcpStream>& near, std::optional<TcpStream>& far) {
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), listening).value();
  std::vector<Endpoint> addresses(1, server.endpoint());
  auto connected = co_await connect(std::move(addresses), connecting);
  EXPECT_TRUE(connected);
  if (connected) near.emplace(std::move(*connected));
  auto accepted = co_await server.accept();
  EXPECT_TRUE(accepted);
  if (accepted) far = std::move(*accepted);
}

TEST(TcpOptions, are_inherited_from_the_listener_and_set_on_connect) {
  EventLoop loop;
  std::optional<TcpStream> near;
  std::optional<TcpStream> far;
  ConnectOptions connecting;
  connecting.tcp = all;
  spawn(loop, connect_with(loop, {.tcp = all}, connecting, near, far));
  loop.run();
  ASSERT_TRUE(near && far);
  expect_all(near->fd());
  expect_all(far->fd());
}

TEST(TcpOptions, servers_probe_idle_connections_by_default) {
  EventLoop loop;
  std::optional<TcpStream> near;
  std::optional<TcpStream> far;
  spawn(loop, connect_with(loop, {}, {}, near, far));
  loop.run();
  ASSERT_TRUE(near && far);
  EXPECT_EQ(option_of(far->fd(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(far->fd(), IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(option_of(far->fd(), IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  EXPECT_EQ(option_of(near->fd(), SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_TRUE(near->set_tcp_options(all));
  expect_all(near->fd());
  EXPECT_EQ(near->set_tcp_options({.keepalive_idle = 24h}).error(), system_error(EINVAL));
  EXPECT_EQ(near->set_tcp_options({.keepalive_idle = 1s, .keepalive_count = 128}).error(),
            system_error(EINVAL));
}

TEST(TcpOptions, are_those_of_the_listeners_of_a_group) {
  LoopGroup group({.threads = 2});
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), {.tcp = all});
  ASSERT_TRUE(server);
  const auto copies = server->copy_listeners();
  ASSERT_TRUE(copies && copies->size() == 2);
  for (const UniqueFd& copy : *copies) expect_all(copy.get());
}

TEST(TcpOptions, that_the_kernel_rejects_make_listen_fail) {
  EventLoop loop;
  const auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0),
                                        {.tcp = {.keepalive_idle = Duration::max()}});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), system_error(EINVAL));
}

}  // namespace
}  // namespace tambour::tcp_options_test
