// sim::DnsServer: each fault, and a resolver that copes with all of them.
#include <netdb.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::simulated_server_test {
namespace {

using namespace std::chrono_literals;

class SimulatedDns : public testing::Test {
 protected:
  SimulatedDns() : client(simulation.add_host("client")), host(simulation.add_host("dns")) {}
  ~SimulatedDns() override {
    resolver.reset();
    loop.reset();
    dns.reset();
  }

  sim::DnsServer& serve(const sim::DnsFaults& faults) {
    dns.emplace(simulation, host, faults);
    dns->add("www.example.org", "192.0.2.1");
    dns->add("www.example.org", "2001:db8::1");
    dns->configure(client, "search example.org\n");
    loop.emplace(client.loop_options());
    resolver.emplace(*loop, dns::ResolverOptions{.cache_bytes_max = 0});
    return *dns;
  }
  std::string text_of(const std::string& name) {
    std::string text;
    spawn(*loop, [](dns::Resolver& from, std::string subject, std::string& into) -> Task<> {
      const auto found = co_await from.resolve(subject, 80);
      if (!found) into = found.error().message();
      if (!found) co_return;
      for (const Endpoint& endpoint : *found)
        into += (into.empty() ? "" : " ") + endpoint.address();
    }(*resolver, name, text));
    simulation.run_for(15s);
    return text;
  }

  sim::Simulation simulation;
  sim::Host& client;
  sim::Host& host;
  std::optional<sim::DnsServer> dns;
  std::optional<EventLoop> loop;
  std::optional<dns::Resolver> resolver;
};

const std::string both = "2001:db8::1 192.0.2.1";

TEST_F(SimulatedDns, answers_from_its_records) {
  serve({}).add({.name = *dns::Name::parse("alias.example.org"),
                 .type = dns::Type::cname,
                 .ttl = 60,
                 .data = dns::Cname{*dns::Name::parse("www.example.org")}});
  dns->add(host, "example.org");
  EXPECT_EQ(text_of("www.example.org"), both);
  EXPECT_EQ(text_of("www"), both);
  EXPECT_EQ(text_of("alias.example.org"), both);
  EXPECT_EQ(text_of("dns.example.org"), host.ip() + " fd00::2");
  EXPECT_EQ(text_of("dns."), host.ip() + " fd00::2");
  EXPECT_EQ(text_of("no.example.org"), "Name or service not known");
  dns->clear();
  EXPECT_EQ(text_of("www.example.org"), "Name or service not known");
}

TEST_F(SimulatedDns, loses_queries) {
  serve({.loss = 0.2});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(text_of("www.example.org"), both);
  EXPECT_GT(dns->stats().lost, 0U);
  dns->faults().loss = 1;
  EXPECT_EQ(text_of("www.example.org"), "Temporary failure in name resolution");
}

TEST_F(SimulatedDns, truncates_answers) {
  serve({.truncation = 1});
  EXPECT_EQ(text_of("www.example.org"), both);
  EXPECT_EQ(dns->stats().tcp_queries, 2U);
  EXPECT_EQ(dns->stats().truncated, 2U);
}

TEST_F(SimulatedDns, may_lack_tcp) {
  serve({.truncation = 1, .over_tcp = false});
  EXPECT_EQ(text_of("www.example.org"), "Temporary failure in name resolution");
}

TEST_F(SimulatedDns, fails) {
  serve({.failure = 1});
  EXPECT_EQ(text_of("www.example.org"), "Temporary failure in name resolution");
  EXPECT_GT(dns->stats().failed, 0U);
}

TEST_F(SimulatedDns, delays_and_reorders_answers) {
  serve({.delay_min = 1s, .delay_max = 3s});
  std::vector<int> order;
  std::vector<TimePoint> ended;
  const TimePoint begin = simulation.now();
  TaskScope scope(*loop);
  for (int i = 0; i < 20; ++i) {
    scope.spawn([&, i]() -> Task<> {
      const std::string name = "n" + std::to_string(i) + ".example.org.";
      static_cast<void>(co_await resolver->query(name, dns::Type::a));
      order.push_back(i);
      ended.push_back(simulation.now());
    });
  }
  simulation.run_for(15s);
  ASSERT_EQ(order.size(), 20U);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  EXPECT_GE(ended.front() - begin, 1s);
  EXPECT_LE(ended.back() - begin, 3100ms);
}

TEST_F(SimulatedDns, forges_answers_that_a_careless_client_believes) {
  serve({.forged = 20});
  EXPECT_EQ(text_of("www.example.org"), both);
  EXPECT_EQ(dns->stats().forged, 40U);
  EXPECT_GT(resolver->stats().rejected, 0U);
  // One that does not check ids.
  auto careless = UdpSocket::bind(*loop, Endpoint::any_v4(0)).value();
  const sockaddr_in at = host.endpoint(53);
  const auto server = Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value();
  dns::Message query;
  query.questions = {{.name = *dns::Name::parse("www.example.org"), .type = dns::Type::a}};
  std::optional<dns::Message> first;
  static_cast<void>(careless.serve({.on_datagrams = [&](UdpSocket&, DatagramBatch& batch) {
    for (const Datagram datagram : batch) {
      if (!first) first = dns::Message::parse(datagram.bytes()).value();
    }
    batch.clear();
  }}));
  const std::string bytes = query.write().value();
  static_cast<void>(careless.try_send_to(std::as_bytes(std::span(bytes)), server));
  simulation.run_for(1s);
  careless.close();
  ASSERT_TRUE(first);
  const dns::A* const address = first->answers_of<dns::A>().at(0);
  EXPECT_EQ(address->address, (std::array<std::uint8_t, 4>{203, 0, 113, 66}));
  EXPECT_TRUE(sim::DnsServer::is_forged(Endpoint::parse("203.0.113.66", 1).value()));
  EXPECT_FALSE(sim::DnsServer::is_forged(Endpoint::parse("192.0.2.1", 1).value()));
}

}  // namespace
}  // namespace tambour::simulated_server_test
