// Connecting while addresses become known one after the other: in virtual time.
#include <netdb.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/dns/error.h>
#include <tambour/net/connector.h>
#include <tambour/net/tcp.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

namespace tambour::connector_streaming_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t port = 7000;

/// Reports addresses at given times, and then an end.
class Script final : public Resolver {
 public:
  struct Step {
    Duration at;
    std::vector<Endpoint> addresses;  ///< All that are known then.
    bool complete;
  };
  std::vector<Step> steps;
  Error error;

  Task<Result<std::vector<Endpoint>>> resolve(std::string, std::uint16_t, AddressFamily) override {
    ADD_FAILURE() << "connect() must use addresses as they become known";
    co_return std::vector<Endpoint>();
  }
  Task<Result<>> resolve_each(std::string, std::uint16_t, AddressFamily, Found found) override {
    Duration passed{};
    for (const Step& step : steps) {
      if (auto slept = co_await sleep_for(step.at - passed); !slept)
        co_return std::unexpected(slept.error());
      passed = step.at;
      found(step.addresses, step.complete);
    }
    if (error) co_return std::unexpected(error);
    co_return {};
  }
};

Task<> hold(TcpStream stream) {
  std::byte byte;
  static_cast<void>(co_await stream.read({&byte, 1}));
}

class Connecting : public testing::Test {
 protected:
  Connecting()
      : host(simulation.add_host("server")),
        loop(client.loop_options()),
        server_loop(host.loop_options()) {
    for (const Endpoint& at : {v4(), v6()}) {
      servers.push_back(TcpServer::listen(server_loop, at).value());
      servers.back().serve(hold);
    }
  }

  Endpoint v4() {
    const sockaddr_in at = host.endpoint(port);
    return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value();
  }
  Endpoint v6() {
    const sockaddr_in6 at = host.endpoint6(port);
    return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value();
  }
  /// Refuses connections.
  Endpoint closed_v4() { return v4().with_port(port + 1); }

  /// Returns the peer's address or the error.
  std::string connect_to_name() {
    std::string outcome;
    const TimePoint began = simulation.now();
    TaskScope scope(loop);
    scope.spawn([](Connecting& test, std::string& into, TimePoint began_at) -> Task<> {
      ConnectOptions options;
      options.resolver = &test.resolver;
      auto stream = co_await connect("name", port, options);
      test.took = test.simulation.now() - began_at;
      into = stream ? stream->peer_endpoint()->address() : stream.error().message();
      test.simulation.stop();
    }(*this, outcome, began));
    simulation.run(1h);
    return outcome;
  }
  void expect_about(Duration expected) const {
    EXPECT_GE(took, expected);
    EXPECT_LT(took, expected + 5ms);
  }

  sim::Simulation simulation;
  sim::Host& client = simulation.add_host("client");
  sim::Host& host;
  EventLoop loop;
  EventLoop server_loop;
  std::vector<TcpServer> servers;
  Script resolver;
  Duration took{};
};

TEST_F(Connecting, starts_at_once_with_ipv6_addresses) {
  resolver.steps = {{.at = 10ms, .addresses = {v6()}, .complete = false},
                    {.at = 2s, .addresses = {v6(), v4()}, .complete = true}};
  EXPECT_EQ(connect_to_name(), v6().address());
  expect_about(10ms);
}

TEST_F(Connecting, waits_for_ipv6_addresses_when_it_knows_ipv4_addresses) {
  resolver.steps = {{.at = 10ms, .addresses = {v4()}, .complete = false},
                    {.at = 2s, .addresses = {v6(), v4()}, .complete = true}};
  EXPECT_EQ(connect_to_name(), v4().address());
  expect_about(60ms);
}

TEST_F(Connecting, prefers_ipv6_addresses_that_follow_soon) {
  resolver.steps = {{.at = 10ms, .addresses = {v4()}, .complete = false},
                    {.at = 40ms, .addresses = {v6(), v4()}, .complete = true}};
  EXPECT_EQ(connect_to_name(), v6().address());
  expect_about(40ms);
}

TEST_F(Connecting, does_not_wait_when_all_addresses_are_known) {
  resolver.steps = {{.at = 10ms, .addresses = {v4()}, .complete = true}};
  EXPECT_EQ(connect_to_name(), v4().address());
  expect_about(10ms);
}

TEST_F(Connecting, tries_addresses_that_become_known_later) {
  resolver.steps = {{.at = 0ms, .addresses = {closed_v4()}, .complete = false},
                    {.at = 500ms, .addresses = {v6(), closed_v4()}, .complete = true}};
  EXPECT_EQ(connect_to_name(), v6().address());
  expect_about(500ms);
}

TEST_F(Connecting, tries_no_address_twice_and_reports_the_last_failure) {
  resolver.steps = {{.at = 0ms, .addresses = {closed_v4()}, .complete = false},
                    {.at = 300ms, .addresses = {closed_v4()}, .complete = true}};
  EXPECT_EQ(connect_to_name(), system_error(ECONNREFUSED).message());
  expect_about(300ms);
}

TEST_F(Connecting, tries_a_limited_number_of_addresses_of_a_name) {
  const auto addresses_with_server_at = [this](std::size_t index) {
    std::vector<Endpoint> addresses;
    for (std::uint16_t i = 1; i <= index; ++i) addresses.push_back(v4().with_port(port + i));
    addresses.push_back(v4());
    return addresses;
  };
  resolver.steps = {{0ms, addresses_with_server_at(63), true}};
  EXPECT_EQ(connect_to_name(), v4().address());
  resolver.steps = {{0ms, addresses_with_server_at(64), true}};
  EXPECT_EQ(connect_to_name(), "Connection refused");
  // The program may pass more.
  bool is_connected = false;
  TaskScope scope(loop);
  scope.spawn([&]() -> Task<> {
    is_connected = (co_await connect(addresses_with_server_at(200))).has_value();
    simulation.stop();
  });
  simulation.run(1h);
  EXPECT_TRUE(is_connected);
}

TEST_F(Connecting, fails_with_the_error_of_the_resolver) {
  resolver.error = resolver_error(EAI_AGAIN);
  EXPECT_EQ(connect_to_name(), resolver_error(EAI_AGAIN).message());
  resolver.error = dns::ErrorCode::too_many_lookups;
  EXPECT_EQ(connect_to_name(), make_error_code(dns::ErrorCode::too_many_lookups).message());
}

}  // namespace
}  // namespace tambour::connector_streaming_test
