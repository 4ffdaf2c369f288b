// Lookups of a bad server over a bad network, while forged answers arrive, with many seeds: each
// lookup ends in time, and with the right addresses or an error.
#include <netdb.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/name_server.h"
#include "support/scale.h"

namespace tambour::forged_answers_test {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::uint8_t, 4> forged_v4{6, 6, 6, 6};
constexpr int names = 12;

std::string name_of(int number) { return "host" + std::to_string(number) + ".example.org"; }

/// Answers of the server, lost and truncated, and answers of forgers.
class Attack {
 public:
  Attack(sim::Simulation& in, sim::Host& server_host, sim::Host& other_host)
      : simulation_(in),
        server_loop_(server_host.loop_options()),
        other_loop_(other_host.loop_options()),
        server_(server_loop_, test::endpoint_of(server_host)),
        other_(UdpSocket::bind(other_loop_, test::endpoint_of(other_host)).value()) {
    for (int i = 0; i < names; ++i) {
      server_.add(test::a_record(name_of(i), {10, 0, 0, static_cast<std::uint8_t>(i)}));
      server_.add(test::aaaa_record(name_of(i), "2001:db8::" + std::to_string(i + 1)));
    }
    const bool has_cookies = in.chance(0.5);
    server_.set_change([this, has_cookies](const dns::Message& question, dns::Message& response,
                                           bool is_tcp) {
      // As many as if the network lost a fifth of the datagrams in each direction. It must not lose
      // queries, because the forger has to know the ids of all of them: an id that is guessed right
      // is no fault of the resolver.
      if (!is_tcp && simulation_.chance(0.36)) return false;
      if (has_cookies && question.edns)
        response.edns->options = {{10, question.edns->options[0].data.substr(0, 8) + "12345678"}};
      if (!is_tcp && simulation_.chance(0.1)) {
        response.truncated = true;
        response.answers.clear();
      }
      return true;
    });
    server_.set_spoofer(
        [this](const dns::Message& question, const Endpoint& from) { forge(question, from); });
  }

 private:
  /// Sends what a spoofer may send that sees nothing, or everything but the id, or that cannot use
  /// the server's address.
  void forge(const dns::Message& question, const Endpoint& client) {
    std::set<std::uint16_t>& used =
        ids_[question.questions[0].name.to_string() + to_string(question.questions[0].type)];
    used.insert(question.id);
    dns::Message forged = dns::Message::response_to(question);
    forged.answers.push_back(
        test::a_record(question.questions[0].name.to_string(), forged_v4, 86400));
    const auto text = [](const dns::Message& message) { return message.write().value(); };
    for (int i = 0; i < 8; ++i) {
      dns::Message guessed = forged;
      do guessed.id = static_cast<std::uint16_t>(simulation_.random(65536));
      while (used.contains(guessed.id));
      server_.send(text(guessed), client);
      server_.send(text(guessed),
                   client.with_port(static_cast<std::uint16_t>(1024 + simulation_.random(64000))));
    }
    dns::Message other = forged;
    other.questions[0].name = test::dns_name("other.example.org");
    server_.send(text(other), client);
    other = forged;
    other.questions[0].type = dns::Type::mx;
    server_.send(text(other), client);
    other.questions.clear();
    server_.send(text(other), client);
    other = forged;
    other.is_response = false;
    server_.send(text(other), client);
    server_.send("", client);
    server_.send(text(forged).substr(0, 1 + simulation_.random(30)), client);
    const std::string all = text(forged);
    static_cast<void>(other_.try_send_to(std::as_bytes(std::span(all)), client));
  }

  sim::Simulation& simulation_;
  EventLoop server_loop_;
  EventLoop other_loop_;
  test::NameServer server_;
  UdpSocket other_;
  std::map<std::string, std::set<std::uint16_t>> ids_;  ///< By question.
};

void scenario(sim::Simulation& simulation) {
  sim::Host& client = simulation.add_host("client");
  sim::Host& server = simulation.add_host("server");
  sim::Host& other = simulation.add_host("other");
  test::write_file(client, "/etc/resolv.conf", "nameserver " + server.ip() + "\n");
  Attack attack(simulation, server, other);
  EventLoop loop(client.loop_options());
  dns::Resolver resolver(loop);
  TaskScope scope(loop);
  int ended = 0;
  int found_any = 0;
  constexpr int lookups = 3 * names;
  for (int i = 0; i < lookups; ++i) {
    scope.spawn([&, i]() -> Task<> {
      static_cast<void>(co_await sleep_for(Duration(simulation.random(3'000'000'000))));
      const TimePoint begin = loop.now();
      const auto found = co_await resolver.resolve(name_of(i % names), 80);
      if (loop.now() - begin > 10'100ms) simulation.fail("a lookup took too long");
      if (!found && found.error() != resolver_error(EAI_AGAIN))
        simulation.fail("a lookup failed with " + found.error().message());
      const std::string v4 = "10.0.0." + std::to_string(i % names);
      const std::string v6 = "2001:db8::" + std::to_string(i % names + 1);
      if (found) {
        ++found_any;
        for (const Endpoint& endpoint : *found) {
          // An IPv6 address in hexadecimal.
          if (endpoint.family() == AF_INET && endpoint.address() != v4)
            simulation.fail("forged: " + endpoint.address());
          if (endpoint.family() == AF_INET6 && !endpoint.address().starts_with("2001:db8::"))
            simulation.fail("forged: " + endpoint.address());
        }
      }
      if (++ended == lookups) simulation.stop();
    });
  }
  simulation.run(1min);
  if (ended != lookups) simulation.fail("a lookup did not end");
  // Each packet is lost with a probability of a fifth, and sent at least six times.
  if (found_any < lookups - 3) simulation.fail("many lookups failed");
  if (resolver.stats().rejected == 0) simulation.fail("no forged answer arrived");
}

sim::Options bad_network(std::uint64_t seed) {
  sim::Options options;
  options.datagram_duplication = 0.2;
  options.datagram_reordering = 0.2;
  options.would_block = seed % 2 == 0 ? 0.05 : 0;
  options.short_read = seed % 3 == 0 ? 0.2 : 0;
  options.trace = false;
  return options;
}

TEST(ForgedAnswers, are_never_accepted) {
  const sim::Seeds seeds{.first = 1, .count = std::max<std::uint64_t>(test::scaled(1000), 50)};
  const auto failure = sim::simulate(seeds, scenario, bad_network);
  ASSERT_FALSE(failure) << failure->report();
}

}  // namespace
}  // namespace tambour::forged_answers_test
