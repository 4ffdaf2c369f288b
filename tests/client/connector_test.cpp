// Connecting to one of several addresses: in virtual time, with millisecond accuracy.
#include <tambour/net/connector.h>

#include <netdb.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/tcp.h>
#include <tambour/net/unix.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/scale.h"

namespace tambour::connector_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t port = 7000;

Task<> hold(TcpStream stream) {
  std::byte byte;
  static_cast<void>(co_await stream.read({&byte, 1}));
}

Endpoint v4(sim::Host& host) {
  const sockaddr_in at = host.endpoint(port);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value();
}

Endpoint v6(sim::Host& host) {
  const sockaddr_in6 at = host.endpoint6(port);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value();
}

/// A client, and servers that each listen on both of their addresses.
class Net {
 public:
  explicit Net(sim::Simulation& in, int server_count)
      : simulation(in), client(in.add_host("client")) {
    client_loop = std::make_unique<EventLoop>(client.loop_options());
    for (int i = 0; i < server_count; ++i) {
      hosts.push_back(&in.add_host("server" + std::to_string(i)));
      loops.push_back(std::make_unique<EventLoop>(hosts.back()->loop_options()));
      listen(i);
    }
  }

  void listen(int server) {
    for (const Endpoint& at : {v4(*hosts[server]), v6(*hosts[server])}) {
      auto listening = TcpServer::listen(*loops[server], at);
      if (!listening) continue;  // Out of descriptors, with some seeds.
      listening->serve(hold);
      servers.emplace(server, std::move(*listening));
    }
  }
  void refuse(int server) { servers.erase(server); }
  void isolate(int server) { simulation.partition(client, *hosts[server]); }

  struct Outcome {
    ConnectError error;
    Duration took{};
    std::string peer{};
  };

  template <class To>
  Outcome connect_to(To to, ConnectOptions options = {}) {
    std::optional<Outcome> outcome;
    TaskScope scope(*client_loop);
    scope.spawn(
        [](Net& net, To whither, ConnectOptions mode, std::optional<Outcome>& result) -> Task<> {
          const TimePoint began = net.simulation.now();
          auto stream = co_await connect(std::move(whither), mode);
          result = Outcome{.error = stream ? ConnectError() : stream.error(),
                           .took = net.simulation.now() - began};
          if (const auto peer = stream ? stream->peer_endpoint() : std::unexpected(Error()))
            result->peer = peer->address();
          net.open_then = net.client.descriptors();
          net.simulation.stop();
        }(*this, std::move(to), options, outcome));
    if (stop_after) simulation.after(*stop_after, [&scope] { scope.request_stop(); });
    simulation.run(1h);
    EXPECT_TRUE(outcome) << "did not end";
    return outcome.value_or(Outcome{.error = system_error(EDEADLK)});
  }

  sim::Simulation& simulation;
  sim::Host& client;
  std::vector<sim::Host*> hosts;
  std::unique_ptr<EventLoop> client_loop;
  std::vector<std::unique_ptr<EventLoop>> loops;
  std::multimap<int, TcpServer> servers;
  std::size_t open_then = 0;  ///< Descriptors of the client when connect() returned.
  std::optional<Duration> stop_after;
};

ConnectOptions within(Duration timeout, RetryPolicy retry = {}) {
  ConnectOptions options;
  options.timeout = timeout;
  options.retry = retry;
  return options;
}

ConnectOptions retrying(RetryPolicy retry) { return within(30s, retry); }

/// The most time that packets and iterations take here.
constexpr Duration soon = 5ms;

void expect_about(Duration took, Duration expected) {
  EXPECT_GE(took, expected);
  EXPECT_LT(took, expected + soon);
}

TEST(Connector, the_next_address_is_tried_after_the_attempt_delay) {
  sim::Simulation simulation;
  Net net(simulation, 2);
  net.isolate(0);
  const auto outcome = net.connect_to(std::vector{v4(*net.hosts[0]), v4(*net.hosts[1])});
  EXPECT_EQ(outcome.peer, net.hosts[1]->ip());
  expect_about(outcome.took, 250ms);
  // The socket of the losing attempt was already closed.
  EXPECT_EQ(net.open_then, 1U);
  EXPECT_EQ(net.client.descriptors(), 0U);
}

TEST(Connector, the_next_address_is_tried_at_once_after_a_refusal) {
  sim::Simulation simulation;
  Net net(simulation, 3);
  net.refuse(0);
  net.refuse(1);
  const auto outcome =
      net.connect_to(std::vector{v4(*net.hosts[0]), v6(*net.hosts[1]), v4(*net.hosts[2])});
  EXPECT_EQ(outcome.peer, net.hosts[2]->ip());
  expect_about(outcome.took, 0ms);
  // Neither is an unreachable address, for which connect(2) fails at once.
  expect_about(
      net.connect_to(std::vector{Endpoint::parse("192.0.2.1:80").value(), v4(*net.hosts[2])}).took,
      0ms);
}

TEST(Connector, address_families_alternate) {
  // Alternating families: 0 over IPv6, 3 over IPv4, 1 over IPv6, 2 over IPv6.
  for (const auto& [alive, expected] :
       std::map<int, Duration>{{0, 0ms}, {3, 250ms}, {1, 500ms}, {2, 750ms}}) {
    sim::Simulation simulation;
    Net net(simulation, 4);
    for (int i = 0; i < 4; ++i) {
      if (i != alive) net.isolate(i);
    }
    const auto outcome = net.connect_to(
        std::vector{v6(*net.hosts[0]), v6(*net.hosts[1]), v6(*net.hosts[2]), v4(*net.hosts[3])});
    EXPECT_FALSE(outcome.error) << alive;
    expect_about(outcome.took, expected);
    EXPECT_EQ(net.open_then, 1U);
  }
}

TEST(Connector, the_first_attempt_may_succeed_after_later_ones_started) {
  sim::Simulation simulation;
  Net net(simulation, 2);
  net.isolate(0);
  net.isolate(1);
  // The SYN is retransmitted after one second.
  simulation.after(500ms, [&] { simulation.heal(net.client, *net.hosts[0]); });
  const auto outcome = net.connect_to(std::vector{v6(*net.hosts[0]), v4(*net.hosts[1])});
  EXPECT_EQ(outcome.peer, "fd00::2");
  expect_about(outcome.took, 1s);
  EXPECT_EQ(net.open_then, 1U);
}

TEST(Connector, a_slow_ipv6_loses_to_ipv4_of_the_same_host) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  net.isolate(0);
  simulation.after(100ms, [&] { simulation.heal(); });
  ConnectOptions options;
  options.attempt_delay = 300ms;
  const auto outcome = net.connect_to("server0:7000", options);
  EXPECT_EQ(outcome.peer, net.hosts[0]->ip());
  expect_about(outcome.took, 300ms);
}

TEST(Connector, reports_the_last_failure_or_a_timeout) {
  sim::Simulation simulation;
  Net net(simulation, 3);
  net.refuse(0);
  net.isolate(1);
  auto outcome = net.connect_to(std::vector{v4(*net.hosts[0])});
  EXPECT_EQ(outcome.error, system_error(ECONNREFUSED));
  outcome = net.connect_to(std::vector{v4(*net.hosts[0]), v4(*net.hosts[1])}, within(3s));
  EXPECT_EQ(outcome.error, system_error(ETIMEDOUT));
  expect_about(outcome.took, 3s);
  EXPECT_EQ(net.open_then, 0U);
  EXPECT_FALSE(net.connect_to(std::vector{v6(*net.hosts[2])}, within(0s)).error);
  EXPECT_EQ(net.connect_to(std::vector<Endpoint>{}).error, system_error(EINVAL));
  for (const char* wrong : {"", "server1", "server1:", "server1:0", "server1:65536", ":x", "a:b:1",
                            "[server1]:80", "server1:80 "})
    EXPECT_EQ(net.connect_to(std::string(wrong)).error, system_error(EINVAL)) << wrong;
  outcome = net.connect_to("nobody:80", retrying({.attempts_max = 5}));
  EXPECT_EQ(outcome.error, resolver_error(EAI_NONAME));
  expect_about(outcome.took, 0ms);
}

TEST(Connector, connects_to_a_host_and_a_port) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  const auto outcome_of = [&](std::string host, auto to, ConnectOptions options = {}) {
    ConnectResult result = std::unexpected(ConnectError(system_error(EDEADLK)));
    TaskScope scope(*net.client_loop);
    scope.spawn([](sim::Simulation& in, std::string name, decltype(to) at, ConnectOptions mode,
                   ConnectResult& stream) -> Task<> {
      stream = co_await connect(name, at, mode);
      in.stop();
    }(simulation, std::move(host), to, options, result));
    simulation.run(1h);
    return result ? result->peer_endpoint().value().port() : -result.error().value();
  };
  ConnectOptions only_v6;
  only_v6.family = AddressFamily::v6;
  EXPECT_EQ(outcome_of("server0", port), port);
  EXPECT_EQ(outcome_of("server0", long{port}), port);
  EXPECT_EQ(outcome_of(net.hosts[0]->ip(), port), port);
  EXPECT_EQ(outcome_of("fd00::2", port, only_v6), port);
  for (const int wrong : {0, -1, 65'536, 65'536 + port})
    EXPECT_EQ(outcome_of("server0", wrong), -EINVAL) << wrong;
  EXPECT_EQ(outcome_of("", port), -EINVAL);
  // Never a Unix socket, nor a second port.
  for (const char* host : {"unix:/socket", "@name", "/socket", "server0:80", "nobody"})
    EXPECT_EQ(outcome_of(host, port), -EAI_NONAME) << host;
}

TEST(Connector, ends_when_it_is_stopped) {
  sim::Simulation simulation;
  Net net(simulation, 2);
  net.isolate(0);
  net.isolate(1);
  net.stop_after = 300ms;
  const auto outcome = net.connect_to(std::vector{v4(*net.hosts[0]), v4(*net.hosts[1])});
  EXPECT_EQ(outcome.error, system_error(ECANCELED));
  expect_about(outcome.took, 300ms);
  EXPECT_EQ(net.open_then, 0U);
}

TEST(Connector, retries_with_increasing_delays) {
  const auto took = [](std::uint64_t seed, unsigned rounds) {
    sim::Simulation simulation(seed);
    Net net(simulation, 1);
    net.refuse(0);
    const auto outcome = net.connect_to(
        "server0:7000", within(1h, {.attempts_max = rounds, .delay = 100ms, .delay_max = 300ms}));
    EXPECT_EQ(outcome.error, system_error(ECONNREFUSED));
    return outcome.took;
  };
  Duration least = 0ms;
  Duration limit = soon;
  unsigned round = 1;
  // Half of each delay is fixed, the rest is random.
  for (const Duration delay : {0ms, 100ms, 200ms, 300ms, 300ms}) {
    least += delay / 2;
    limit += delay + soon;
    const Duration time = took(1, round++);
    EXPECT_GE(time, least);
    EXPECT_LE(time, limit);
  }
  EXPECT_EQ(took(2, 5), took(2, 5));
  EXPECT_NE(took(2, 5), took(3, 5));
}

TEST(Connector, negative_delays_are_zero) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  net.refuse(0);
  for (const Duration wrong : {Duration(-1ns), Duration(-2ns), Duration::min()}) {
    for (const RetryPolicy& policy : {RetryPolicy{.attempts_max = 3, .delay_max = wrong},
                                      RetryPolicy{.attempts_max = 3, .delay = wrong}}) {
      const auto outcome = net.connect_to("server0:7000", retrying(policy));
      EXPECT_EQ(outcome.error, system_error(ECONNREFUSED));
      expect_about(outcome.took, 0ms);
    }
  }
}

TEST(Connector, a_restarted_server_is_reconnected) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  net.refuse(0);
  simulation.after(400ms, [&] { net.listen(0); });
  const auto outcome = net.connect_to("server0:7000", retrying({.attempts_max = 10}));
  EXPECT_FALSE(outcome.error);
  EXPECT_GE(outcome.took, 400ms);
}

TEST(Connector, a_restarted_unix_server_is_reconnected) {
  sim::Simulation simulation;
  Net net(simulation, 0);
  std::optional<UnixServer> server;
  simulation.after(400ms, [&] {
    server.emplace(
        UnixServer::listen(*net.client_loop, Endpoint::unix_name("/socket").value()).value());
    server->serve([](UnixStream) -> Task<> { co_return; });
  });
  auto outcome = net.connect_to("unix:/socket", retrying({.attempts_max = 2}));
  EXPECT_EQ(outcome.error, system_error(ENOENT));
  outcome = net.connect_to("unix:/socket", retrying({.attempts_max = 10}));
  EXPECT_FALSE(outcome.error);
  EXPECT_TRUE(server);
}

TEST(Connector, binds_to_a_local_address) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  ConnectOptions options;
  options.local = or_throw(Endpoint::parse(net.client.ip(), 0));
  auto outcome = net.connect_to("server0:7000", options);
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.peer, net.hosts[0]->ip()) << "the IPv4 address, as the local one";
  options.local = or_throw(Endpoint::parse(net.hosts[0]->ip(), 0));
  outcome = net.connect_to("server0:7000", options);
  EXPECT_EQ(outcome.error, system_error(EADDRNOTAVAIL));
  EXPECT_EQ(outcome.error.step(), ConnectStep::connect);
}

TEST(Connector, errors_name_their_step) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  EXPECT_EQ(net.connect_to("nobody:80").error.step(), ConnectStep::resolve);
  EXPECT_EQ(net.connect_to("nobody").error.step(), ConnectStep::arguments);
  net.isolate(0);
  EXPECT_EQ(net.connect_to("server0:7000", within(1s)).error.step(), ConnectStep::connect);
}

TEST(Connector, delays_without_jitter_are_exact) {
  sim::Simulation simulation;
  Net net(simulation, 1);
  net.refuse(0);
  const auto outcome = net.connect_to(
      "server0:7000",
      retrying({.attempts_max = 4, .delay = 100ms, .delay_max = 300ms, .jitter = 0}));
  EXPECT_GE(outcome.took, 600ms);
  EXPECT_LT(outcome.took, 600ms + 4 * soon);
}

TEST(Connector, leaks_nothing_in_a_thousand_simulations) {
  int connected = 0;
  const auto scenario = [&connected](sim::Simulation& simulation) {
    Net net(simulation, 3);
    for (int i = 0; i < 3; ++i) {
      if (simulation.chance(0.3)) net.refuse(i);
      if (simulation.chance(0.3)) net.isolate(i);
    }
    if (simulation.chance(0.5)) simulation.after(700ms, [&] { simulation.heal(); });
    if (simulation.chance(0.2)) net.stop_after = Duration(simulation.random(2'000'000'000));
    std::vector<Endpoint> to;
    for (sim::Host* host : net.hosts) {
      to.push_back(v6(*host));
      to.push_back(v4(*host));
    }
    const auto outcome = net.connect_to(
        std::move(to), within(5s, {.attempts_max = unsigned(1 + simulation.random(3))}));
    if (net.open_then != (outcome.error ? 0U : 1U)) simulation.fail("losers were left open");
    if (net.client.descriptors() != 0) simulation.fail("a descriptor was left");
    if (outcome.took > 5s + 100ms) simulation.fail("took too long");
    if (!outcome.error) ++connected;
  };
  const auto failure = sim::simulate({.first = 1, .count = test::scaled(1000)}, scenario);
  EXPECT_FALSE(failure) << failure->report();
  EXPECT_GT(connected, 10);
}

}  // namespace
}  // namespace tambour::connector_test
