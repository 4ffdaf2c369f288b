// The default of ListenOptions::connections_max, which follows from RLIMIT_NOFILE.
#include "server/connections_max.h"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/net/tcp.h>
#include <tambour/sim/host.h>
#include <tambour/sim/simulation.h>
#include <tambour/threads/loop_group.h>

namespace tambour::connections_max_test {
namespace {

/// Sets the soft limit of descriptors for its lifetime.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t fds_max) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit limit{.rlim_cur = fds_max, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(ConnectionLimit, leaves_an_eighth_of_the_descriptors_and_at_least_64_if_possible) {
  EXPECT_EQ(detail::server::derived_connections_max(1'048'576), 917'504U);
  EXPECT_EQ(detail::server::derived_connections_max(1024), 896U);
  EXPECT_EQ(detail::server::derived_connections_max(256), 192U);
  EXPECT_EQ(detail::server::derived_connections_max(100), 50U);
  EXPECT_EQ(detail::server::derived_connections_max(1), 1U);
  EXPECT_EQ(detail::server::derived_connections_max(0), 1U);
}

TEST(ConnectionLimit, of_a_server_follows_from_the_limit_when_it_is_opened) {
  EventLoop loop;
  const DescriptorLimit limit(512);
  const TcpServer derived = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  EXPECT_EQ(derived.connections_max(), 448U);
  const TcpServer set =
      or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0), {.connections_max = 7}));
  EXPECT_EQ(set.connections_max(), 7U);
}

TEST(ConnectionLimit, of_a_group_is_that_of_all_loops_together) {
  LoopGroup group({.threads = 2});
  const DescriptorLimit limit(512);
  for (const Placement placement : {Placement::kernel, Placement::round_robin}) {
    const TcpServerGroup server =
        or_throw(TcpServerGroup::listen(group, Endpoint::loopback_v4(0), {.placement = placement}));
    EXPECT_EQ(server.connections_max(), 448U);
  }
}

TEST(ConnectionLimit, of_a_simulated_host_does_not_depend_on_the_machine) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("server").loop_options());
  const TcpServer server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  EXPECT_EQ(server.connections_max(), SIZE_MAX);
}

}  // namespace
}  // namespace tambour::connections_max_test
