// A TCP socket that connects to its own local port is connected to itself, which must be treated as
// an error.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <fstream>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/connector.h>
#include <tambour/net/tcp.h>
#include <tambour/task/scope.h>

#include "net/connect.h"
#include "support/files.h"
#include "support/network.h"
#include "support/process.h"

namespace tambour::self_connection_test {
namespace {

using namespace std::chrono_literals;

TEST(SelfConnections, are_distinguished_from_others) {
  EventLoop loop;
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Endpoint any_port = Endpoint::loopback_v4(0);
  ASSERT_EQ(::bind(fd.get(), any_port.data(), any_port.size()), 0);
  const Socket local(loop, fd.release());
  const Endpoint at = local.local_endpoint().value();
  EXPECT_FALSE(detail::net::is_connected_to_itself(local, at));
  ASSERT_EQ(::connect(local.fd(), at.data(), at.size()), 0);
  EXPECT_TRUE(detail::net::is_connected_to_itself(local, at));
  EXPECT_TRUE(detail::net::is_connected_to_itself(local, Endpoint::any_v4(at.port())));

  test::Ends ends = test::open_tcp();
  const Socket other(loop, ends.near.release());
  EXPECT_FALSE(detail::net::is_connected_to_itself(other, other.peer_endpoint().value()));
}

/// Runs in a network in which connect(2) can choose only one local port: that of the server, which
/// does not run.
void expect_refused(const Endpoint& to) {
  EventLoop loop;
  int done = 0;
  spawn(loop, [](Endpoint own_port, int& ended) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      const auto stream = co_await TcpStream::connect(own_port);
      EXPECT_EQ(stream ? Error() : stream.error(), system_error(ECONNREFUSED));
      const std::vector<Endpoint> addresses{own_port};
      const auto by_name = co_await connect(addresses);
      EXPECT_EQ(by_name ? ConnectError() : by_name.error(), system_error(ECONNREFUSED));
    }
    ended = 1;
  }(to, done));
  loop.run();
  EXPECT_EQ(done, 1);
}

TEST(SelfConnections, are_refused) {
  test::in_own_network([] {
    std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << "45000 45000" << std::flush;
    const std::size_t before = test::open_descriptors();
    expect_refused(Endpoint::loopback_v4(45000));
    expect_refused(Endpoint::any_v4(45000));
    expect_refused(Endpoint::loopback_v6(45000));
    EXPECT_EQ(test::open_descriptors(), before);
  });
}

}  // namespace
}  // namespace tambour::self_connection_test
