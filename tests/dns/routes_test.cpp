// The ranges of addresses that the kernel sends from the same source address.
#include "dns/addresses/routes.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/endpoint.h>

#include "loop/core.h"
#include "support/network.h"
#include "support/sandbox.h"

namespace tambour::routes_test {
namespace {

using dns::detail::Routes;

Routes load() {
  EventLoop loop;
  Routes routes;
  routes.load(detail::loop::core_of(loop).backend().system());
  return routes;
}

std::optional<std::string> source_of(const IpAddress& to) {
  const Endpoint endpoint(to, 53);
  const int fd = ::socket(endpoint.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::optional<std::string> source;
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  auto* const any = reinterpret_cast<sockaddr*>(&local);
  if (::connect(fd, endpoint.data(), endpoint.size()) == 0 && ::getsockname(fd, any, &size) == 0)
    source = Endpoint::from(any, size)->address();
  ::close(fd);
  return source;
}

void add_routes() {
  test::command("ip address add 10.1.2.3/24 dev lo");
  test::command("ip address add 10.1.3.4/32 dev lo");
  test::command("ip route add 10.5.0.0/16 dev lo src 10.1.2.3");
  test::command("ip route add 10.5.128.0/18 dev lo src 10.1.3.4");
  test::command("ip route add unreachable 10.5.130.0/24");
  test::command("ip route add default dev lo src 10.1.3.4 table 100");
  test::command("ip rule add to 10.77.16.0/20 lookup 100");
}

void add_v6_routes() {
  test::add_ipv6_address("2001:db8:1::1", 64);
  test::add_ipv6_address("2001:db8:4000::1", 48);
  test::add_ipv6_address("fd00::1", 64);
  test::command("ip -6 route add 2001:db8::/32 dev lo");
  test::command("ip -6 route add fd00::/8 dev lo");
  test::command("ip -6 route add unreachable 2001:db8:ff00::/40");
}

/// Addresses in and around these prefixes.
std::vector<IpAddress> addresses_near(const std::vector<const char*>& prefixes) {
  std::mt19937 random(1);
  std::vector<IpAddress> found;
  for (const char* const text : prefixes) {
    const IpAddress prefix = IpAddress::parse(text).value();
    for (int i = 0; i < 300; ++i) {
      const std::size_t bits = prefix.bytes().size() * 8;
      std::vector<std::uint8_t> near(prefix.bytes().begin(), prefix.bytes().end());
      // Many leading bits in common.
      for (std::size_t bit = random() % bits; bit < bits; ++bit) {
        if (random() % 2 == 0) near[bit / 8] ^= std::uint8_t(0x80U >> bit % 8);
      }
      found.push_back(IpAddress::from_bytes(near).value());
    }
  }
  return found;
}

void expect_one_source_in_each_range(const std::vector<IpAddress>& addresses) {
  const Routes routes = load();
  ASSERT_GT(routes.size(), 20U);
  std::map<IpAddress, std::optional<std::string>> sources;
  for (const IpAddress& address : addresses) {
    const IpAddress range = routes.range_of(address);
    const auto source = source_of(address);
    const auto known = sources.try_emplace(range, source).first;
    EXPECT_EQ(source, known->second) << address.to_string();
  }
  // Otherwise nothing was gained.
  EXPECT_LT(sources.size(), addresses.size() / 5);
}

TEST(DnsRoutes, have_one_source_in_each_range) {
  test::in_own_network([] {
    add_routes();
    expect_one_source_in_each_range(addresses_near(
        {"10.1.2.3", "10.1.3.4", "10.5.130.1", "10.5.140.1", "10.77.16.1", "192.0.2.1"}));
  });
}

TEST(DnsRoutes, of_ipv6_have_one_source_in_each_range) {
  test::in_own_network([] {
    add_v6_routes();
    expect_one_source_in_each_range(
        addresses_near({"2001:db8::1", "2001:db8:4000::1", "2001:db8:ff00::1", "fd00::1", "::1",
                        "2002::1", "::ffff:10.1.2.3"}));
  });
}

TEST(DnsRoutes, with_several_paths_have_no_ranges) {
  test::in_own_network([] {
    EXPECT_GT(load().size(), 0U);
    add_routes();
    test::command("ip route add 10.8.0.0/16 nexthop dev lo weight 1 nexthop dev lo weight 2");
    const Routes routes = load();
    EXPECT_EQ(routes.size(), 0U);
    const IpAddress any = IpAddress::parse("10.1.1.1").value();
    EXPECT_EQ(routes.range_of(any), any);
  });
}

TEST(DnsRoutes, are_not_read_if_there_are_many) {
  test::in_own_network([] {
    test::command(
        "for i in $(seq 0 255); do for j in $(seq 0 31); do "
        "echo route add unreachable 10.$i.$j.0/24; done; done | ip -batch -");
    EXPECT_EQ(load().size(), 0U);
  });
}

TEST(DnsRoutes, are_not_read_under_a_filter) {
  test::in_own_network([] {
    EXPECT_GT(load().size(), 0U);
    ASSERT_TRUE(test::forbid_io_uring(EPERM));
    EXPECT_EQ(load().size(), 0U);
  });
}

}  // namespace
}  // namespace tambour::routes_test
