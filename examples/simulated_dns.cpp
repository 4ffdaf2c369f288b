// Tests a lookup with a DNS server that loses and delays answers, while an attacker forges others,
// in a hundred simulations.
#include <cstdio>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// The code under test: it knows nothing of the simulation.
Task<> look_up(EventLoop& loop, Result<std::vector<Endpoint>>& found) {
  found = co_await dns::Resolver::of(loop).resolve("www.example.org", 80);
}

void scenario(sim::Simulation& simulation) {
  sim::Host& client = simulation.add_host("client");
  const sim::DnsFaults faults{.loss = 0.1, .truncation = 0.2, .delay_max = 200ms, .forged = 5};
  sim::DnsServer dns(simulation, simulation.add_host("dns"), faults);
  dns.add("www.example.org", "192.0.2.1");
  dns.configure(client);

  EventLoop loop(client.loop_options());
  Result<std::vector<Endpoint>> found;
  spawn(loop, look_up(loop, found));
  simulation.run_for(30s);
  if (!found) return simulation.fail("not found: " + found.error().message());
  for (const Endpoint& endpoint : *found) {
    if (sim::DnsServer::is_forged(endpoint)) simulation.fail("believed the attacker");
  }
}

int main() {
  const auto options = [](std::uint64_t) { return sim::Options(); };
  const auto failure = sim::simulate({.first = 1, .count = 100}, &scenario, options);
  std::puts(failure ? failure->report().c_str() : "found in each simulation");
  return failure ? 1 : 0;
}
