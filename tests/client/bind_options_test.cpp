// The interface, transparent and foreign addresses, and local addresses, in a network namespace.
#include <tambour/net/bind_options.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/network.h"

namespace tambour::bind_options_test {
namespace {

using namespace std::chrono_literals;

Error error_of(const auto& result) { return result ? Error() : result.error(); }

Endpoint endpoint(const std::string& text) { return Endpoint::parse(text).value(); }

/// Connects from `options.local` to `to`, which a server on the same loop listens on; returns the
/// peer that the server sees, or the error.
std::string peer_seen(const Endpoint& at, ConnectOptions options,
                      const ListenOptions& listen_options = {}) {
  EventLoop loop;
  auto server = TcpServer::listen(loop, at, listen_options);
  if (!server) return server.error().message();
  std::string seen;
  const Endpoint to = server->endpoint();
  TaskScope tasks(loop);
  auto connecting = [](Endpoint there, ConnectOptions with, TaskScope& scope,
                       std::string& result) -> Task<> {
    std::vector<Endpoint> addresses{there};
    auto stream = co_await connect(std::move(addresses), std::move(with));
    if (stream) co_return;
    result = stream.error().message();
    scope.request_stop();
  };
  tasks.spawn(connecting(to, std::move(options), tasks, seen));
  tasks.spawn([](TcpServer& from, std::string& result) -> Task<> {
    auto accepted = co_await timeout(1min, from.accept());
    if (accepted) result = accepted->peer_endpoint().value().to_string();
  }(*server, seen));
  loop.run();
  return seen;
}

TEST(LocalAddresses, may_have_a_port_and_a_scope) {
  test::in_own_network([] {
    test::command("ip addr add 10.1.0.1/24 dev lo");
    test::add_ipv6_address("fe80::1234", 64);
    ConnectOptions options;
    options.timeout = 1min;
    options.local = endpoint("127.0.0.5:4321");
    EXPECT_EQ(peer_seen(endpoint("127.0.0.1:0"), options), "127.0.0.5:4321");
    options.local = endpoint("[fe80::1234%lo]:4322");
    EXPECT_EQ(peer_seen(endpoint("[fe80::1234%lo]:0"), options), "[fe80::1234%lo]:4322");
    options.local = endpoint("10.1.0.1:0");
    EXPECT_TRUE(peer_seen(endpoint("127.0.0.1:0"), options).starts_with("10.1.0.1:"));
    options.local = endpoint("10.2.0.9:0");
    EXPECT_EQ(peer_seen(endpoint("127.0.0.1:0"), options), system_error(EADDRNOTAVAIL).message());
    EventLoop loop;
    auto from = UdpSocket::bind(loop, endpoint("[fe80::1234%lo]:4323"));
    auto to = UdpSocket::bind(loop, endpoint("[fe80::1234%lo]:4324"));
    ASSERT_TRUE(from && to);
    ASSERT_TRUE(from->connect(endpoint("[fe80::1234%lo]:4324")));
    spawn(loop, [](UdpSocket& source, UdpSocket& target) -> Task<> {
      EXPECT_TRUE(co_await source.send(std::as_bytes(std::span("x", 1))));
      DatagramBatch batch(1, 100);
      EXPECT_TRUE(co_await timeout(1min, target.receive(batch)));
      EXPECT_EQ(batch.size(), 1U);
      if (!batch.empty()) {
        EXPECT_EQ((*batch.begin()).peer().to_string(), "[fe80::1234%lo]:4323");
      }
    }(*from, *to));
    loop.run();
  });
}

TEST(BindingToAnInterface, limits_connections_listeners_and_datagrams) {
  test::in_own_network([] {
    test::command("ip link add bridge0 type bridge && ip link set bridge0 up");
    ConnectOptions options;
    options.timeout = 1min;
    options.bind.interface = "lo";
    EXPECT_TRUE(peer_seen(endpoint("127.0.0.1:0"), options).starts_with("127.0.0.1:"));
    options.bind.interface = "bridge0";
    options.timeout = 1s;
    EXPECT_FALSE(peer_seen(endpoint("127.0.0.1:0"), options).starts_with("127."));
    options.timeout = 1min;
    options.bind.interface = "none";
    EXPECT_EQ(peer_seen(endpoint("127.0.0.1:0"), options), system_error(ENODEV).message());
    options.bind.interface = "a-name-that-is-too-long";
    EXPECT_EQ(peer_seen(endpoint("127.0.0.1:0"), options), system_error(ENODEV).message());
    options.bind.interface = std::string("lo\0x", 4);
    EXPECT_EQ(peer_seen(endpoint("127.0.0.1:0"), options), system_error(EINVAL).message());
    options.bind.interface.clear();
    ListenOptions listen_options;
    listen_options.bind.interface = "bridge0";
    const std::string unreachable = peer_seen(endpoint("127.0.0.1:0"), options, listen_options);
    EXPECT_EQ(unreachable, system_error(ECONNREFUSED).message());
    EventLoop loop;
    UdpOptions udp;
    udp.bind.interface = "none";
    EXPECT_EQ(error_of(UdpSocket::bind(loop, Endpoint::any_v6(0), udp)), system_error(ENODEV));
    udp.bind.interface = "lo";
    auto socket = UdpSocket::bind(loop, Endpoint::any_v6(0), udp);
    ASSERT_TRUE(socket);
    std::array<char, 16> name{};
    socklen_t size = name.size();
    ASSERT_EQ(::getsockopt(socket->fd(), SOL_SOCKET, SO_BINDTODEVICE, name.data(), &size), 0);
    EXPECT_STREQ(name.data(), "lo");
  });
}

TEST(ForeignAddresses, may_be_bound_with_freebind_and_transparent) {
  test::in_own_network([] {
    // Everything is local, as with a rule for a transparent proxy.
    test::command("ip link set lo up && ip route add local 192.0.2.0/24 dev lo");
    EventLoop loop;
    for (const char* const text : {"198.51.100.1:0", "[2001:db8::1]:0"}) {
      const Endpoint at = endpoint(text);
      EXPECT_EQ(error_of(UdpSocket::bind(loop, at)), system_error(EADDRNOTAVAIL));
      EXPECT_EQ(error_of(TcpServer::listen(loop, at)), system_error(EADDRNOTAVAIL));
      for (const bool is_transparent : {false, true}) {
        UdpOptions udp;
        ListenOptions tcp;
        (is_transparent ? udp.bind.transparent : udp.bind.freebind) = true;
        (is_transparent ? tcp.bind.transparent : tcp.bind.freebind) = true;
        const auto socket = UdpSocket::bind(loop, at, udp);
        EXPECT_TRUE(socket) << text << ": " << error_of(socket).message();
        const auto server = TcpServer::listen(loop, at, tcp);
        EXPECT_TRUE(server) << text << ": " << error_of(server).message();
      }
    }
    // A connection that appears to come from another machine.
    ConnectOptions options;
    options.timeout = 1min;
    options.local = endpoint("192.0.2.7:0");
    options.bind.transparent = true;
    EXPECT_TRUE(peer_seen(endpoint("127.0.0.1:0"), options).starts_with("192.0.2.7:"));
  });
}

}  // namespace
}  // namespace tambour::bind_options_test
