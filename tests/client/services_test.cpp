// Connecting by HTTPS and SRV records, in a simulation.
#include <arpa/inet.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/resolver_fixture.h"

namespace tambour::services_test {
namespace {

using namespace std::chrono_literals;
using test::a_record;
using test::dns_name;

dns::SvcParam port_param(std::uint16_t port) {
  return {dns::SvcParam::port, {static_cast<char>(port >> 8U), static_cast<char>(port)}};
}
dns::SvcParam alpn_param(const std::vector<std::string>& names) {
  std::string value;
  for (const std::string& name : names) value += static_cast<char>(name.size()) + name;
  return {dns::SvcParam::alpn, value};
}
dns::SvcParam hint_param(const std::string& address) {
  std::string value(4, '\0');
  EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), value.data()), 1);
  return {dns::SvcParam::ipv4hint, value};
}

class ServiceRecords : public test::ResolverTest {
 protected:
  /// Two servers that accept connections at ports 443, 8443 and 993.
  ServiceRecords() {
    for (int i = 0; i < 2; ++i) {
      webs.push_back(&simulation.add_host("web" + std::to_string(i)));
      web_loops.push_back(std::make_unique<EventLoop>(webs.back()->loop_options()));
      for (const std::uint16_t port : {443, 8443, 993}) {
        auto server =
            TcpServer::listen(*web_loops.back(), test::endpoint_of(*webs.back(), port)).value();
        server.serve([](TcpStream stream) -> Task<> {
          std::byte byte;
          static_cast<void>(co_await stream.read({&byte, 1}));
        });
        listeners.push_back(std::move(server));
      }
    }
    address("www.example.net", 0);
    address("web1.example.net", 1);
  }
  ~ServiceRecords() override { listeners.clear(); }

  void address(const std::string& name, int web) {
    dns::A data;
    ::inet_pton(AF_INET, webs[static_cast<std::size_t>(web)]->ip().c_str(), data.address.data());
    both([&](test::NameServer& server) { server.add(a_record(name, data.address)); });
  }
  void https(const std::string& name, std::uint16_t priority, const std::string& target,
             std::vector<dns::SvcParam> params = {}) {
    add(name, dns::Type::https, dns::Svcb{priority, dns_name(target), std::move(params)});
  }
  void srv(const std::string& name, std::uint16_t priority, std::uint16_t port,
           const std::string& target) {
    add(name, dns::Type::srv, dns::Srv{priority, 0, port, dns_name(target)});
  }
  void add(const std::string& name, dns::Type type, dns::Data data) {
    both([&](test::NameServer& server) {
      server.add({.name = dns_name(name), .type = type, .ttl = 60, .data = data});
    });
  }

  /// Returns "web0:443", or the error.
  std::string connect_to(const std::string& host, std::uint16_t port, ConnectOptions options) {
    chosen = {};
    options.resolver = &the_resolver();
    options.family = AddressFamily::v4;
    const auto stream = run(tambour::connect(host, port, options));
    if (!stream) return stream.error().message();
    chosen = stream->server();
    const Endpoint peer = stream->peer_endpoint().value();
    for (const sim::Host* web : webs) {
      if (web->ip() == peer.address()) return web->name() + ':' + std::to_string(peer.port());
    }
    return peer.to_string();
  }
  std::string by_https(const std::string& host, std::uint16_t port = 443) {
    ConnectOptions options;
    options.https_records = true;
    return connect_to(host, port, options);
  }

  std::vector<sim::Host*> webs;
  std::vector<std::unique_ptr<EventLoop>> web_loops;
  std::vector<TcpServer> listeners;
  ServiceTarget chosen;
};

TEST_F(ServiceRecords, lead_to_another_host_and_port) {
  https("www.example.net", 1, "web1.example.net", {alpn_param({"h2", "h3"}), port_param(8443)});
  EXPECT_EQ(by_https("www.example.net"), "web1:8443");
  EXPECT_EQ(chosen.host, "web1.example.net");
  EXPECT_EQ(chosen.alpn, (std::vector<std::string>{"h2", "h3", "http/1.1"}));
  EXPECT_EQ(connect_to("www.example.net", 443, {}), "web0:443") << "followed without being asked";
}

TEST_F(ServiceRecords, are_optional) {
  EXPECT_EQ(by_https("www.example.net"), "web0:443");
  EXPECT_EQ(chosen.host, "www.example.net");
  EXPECT_TRUE(chosen.alpn.empty());
  EXPECT_EQ(by_https("missing.example.net"), "Name or service not known");
  EXPECT_EQ(by_https(webs[1]->ip(), 8443), "web1:8443");
}

TEST_F(ServiceRecords, of_other_ports_have_a_prefix) {
  https("www.example.net", 1, "missing.example.net");
  https("_8443._https.www.example.net", 1, "web1.example.net");
  EXPECT_EQ(by_https("www.example.net", 8443), "web1:8443");
}

TEST_F(ServiceRecords, are_tried_by_priority_and_the_host_last) {
  https("www.example.net", 2, "web1.example.net", {port_param(8443)});
  https("www.example.net", 1, "web1.example.net", {port_param(993)});
  EXPECT_EQ(by_https("www.example.net"), "web1:993");
  // The server of the first record refuses connections.
  both([](test::NameServer& server) { server.clear(); });
  resolver->clear_cache();
  address("www.example.net", 0);
  address("web1.example.net", 1);
  https("www.example.net", 1, "web1.example.net", {port_param(1)});
  https("www.example.net", 2, "missing.example.net");
  EXPECT_EQ(by_https("www.example.net"), "web0:443");
}

TEST_F(ServiceRecords, follow_aliases) {
  https("example.net", 0, "pool.example.net");
  https("pool.example.net", 0, "cdn.example.net");
  https("cdn.example.net", 3, ".", {port_param(8443)});
  address("cdn.example.net", 1);
  EXPECT_EQ(by_https("example.net"), "web1:8443");
  EXPECT_EQ(chosen.host, "cdn.example.net");
  // An alias without HTTPS records.
  https("apex.example.net", 0, "web1.example.net");
  EXPECT_EQ(by_https("apex.example.net"), "web1:443");
  // An endless chain, and a service that does not exist.
  https("www.example.net", 0, "www.example.net");
  EXPECT_EQ(by_https("www.example.net"), "web0:443");
  https("off.example.net", 0, ".");
  address("off.example.net", 1);
  EXPECT_EQ(by_https("off.example.net"), "web1:443");
}

TEST_F(ServiceRecords, give_addresses_early) {
  https("www.example.net", 1, "slow.example.net", {port_param(8443), hint_param(webs[1]->ip())});
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message&, bool) {
      return question.questions[0].name != dns_name("slow.example.net");
    });
  });
  const TimePoint begin = simulation.now();
  EXPECT_EQ(by_https("www.example.net"), "web1:8443");
  EXPECT_LT(simulation.now() - begin, 60ms) << "waited for the addresses";
}

TEST_F(ServiceRecords, give_a_limited_number_of_addresses) {
  dns::SvcParam v4{dns::SvcParam::ipv4hint, std::string(4 * 5000, '\x0a')};
  dns::SvcParam v6{dns::SvcParam::ipv6hint, std::string(16 * 1000, '\x20')};
  https("www.example.net", 1, "web1.example.net", {std::move(v4), std::move(v6)});
  const auto found = run(the_resolver().find_https("www.example.net", 443));
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().address_hints.size(), 64U);
}

TEST_F(ServiceRecords, with_unknown_mandatory_parameters_are_ignored) {
  https("www.example.net", 1, "web1.example.net",
        {{dns::SvcParam::mandatory, std::string("\x02\x00", 2)}, {512, "x"}});
  https("www.example.net", 2, "web1.example.net",
        {{dns::SvcParam::mandatory, std::string("\0\3", 2)}, port_param(8443)});
  EXPECT_EQ(by_https("www.example.net"), "web1:8443");
  EXPECT_EQ(run(the_resolver().find_https("www.example.net", 443))->size(), 1U);
}

TEST_F(ServiceRecords, are_not_waited_for_if_the_addresses_are_known) {
  https("www.example.net", 1, "web1.example.net");
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message&, bool) {
      return question.questions[0].type != dns::Type::https;
    });
  });
  const TimePoint begin = simulation.now();
  EXPECT_EQ(by_https("www.example.net"), "web0:443");
  EXPECT_GE(simulation.now() - begin, 50ms);
  EXPECT_LT(simulation.now() - begin, 60ms);
}

TEST_F(ServiceRecords, of_srv_lead_to_another_host_and_port) {
  ConnectOptions imaps;
  imaps.srv_service = "_imaps._tcp";
  EXPECT_EQ(connect_to("www.example.net", 443, imaps), "web0:443");
  srv("_imaps._tcp.example.net", 1, 1, "web1.example.net");
  srv("_imaps._tcp.example.net", 2, 993, "web1.example.net");
  EXPECT_EQ(connect_to("example.net", 443, imaps), "web1:993");
  EXPECT_EQ(chosen.port, 993);
  srv("_imaps._tcp.off.example.net", 0, 0, ".");
  address("off.example.net", 1);
  EXPECT_EQ(connect_to("off.example.net", 993, imaps), Error(dns::ErrorCode::no_service).message());
}

TEST_F(ServiceRecords, need_a_valid_port) {
  for (const int port : {-1, 0, 65536, 1 << 20})
    EXPECT_EQ(run(tambour::connect("www.example.net", port)).error(), system_error(EINVAL));
  EXPECT_EQ(run(tambour::connect("www.example.net:65536")).error(), system_error(EINVAL));
  EXPECT_EQ(questions(), 0U);
}

TEST_F(ServiceRecords, can_be_followed_with_any_loss) {
  https("www.example.net", 1, "web1.example.net", {port_param(8443), hint_param(webs[1]->ip())});
  https("www.example.net", 2, "web1.example.net", {port_param(993)});
  simulation.options().datagram_loss = 0.3;
  simulation.options().datagram_reordering = 0.3;
  simulation.options().would_block = 0.1;
  for (int i = 0; i < 100; ++i) {
    make();
    const std::string to = by_https("www.example.net");
    EXPECT_TRUE(to == "web1:8443" || to == "web1:993" || to == "web0:443") << to;
  }
}

}  // namespace
}  // namespace tambour::services_test
