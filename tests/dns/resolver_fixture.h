// A resolver in a simulation, for tests.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/name_server.h"

namespace tambour::test {

inline sim::Options without_trace() {
  sim::Options options;
  options.trace = false;
  return options;
}

/// A client with a resolver, and two name servers.
class ResolverTest : public testing::Test {
 public:
  using Found = Result<std::vector<Endpoint>>;

 protected:
  ResolverTest() : simulation(1, without_trace()), client(simulation.add_host("client")) {
    loop = std::make_unique<EventLoop>(client.loop_options());
    for (int i = 0; i < 2; ++i) {
      hosts.push_back(&simulation.add_host("ns" + std::to_string(i)));
      loops.push_back(std::make_unique<EventLoop>(hosts.back()->loop_options()));
      servers.push_back(std::make_unique<NameServer>(*loops.back(), endpoint_of(*hosts.back())));
    }
    configure("");
    both([](NameServer& server) {
      server.add(a_record("www.example.org", {192, 0, 2, 1}));
      server.add(aaaa_record("www.example.org", "2001:db8::1"));
    });
  }
  ~ResolverTest() override {
    resolver.reset();
    servers.clear();
    loops.clear();
    loop.reset();
  }

  void both(const std::function<void(NameServer&)>& change) {
    for (auto& server : servers) change(*server);
  }

  /// Writes resolv.conf with both servers and these lines.
  void configure(const std::string& lines) {
    write_file(client, "/etc/resolv.conf",
               "nameserver " + hosts[0]->ip() + "\nnameserver " + hosts[1]->ip() + "\n" + lines);
  }
  dns::Resolver& make(dns::ResolverOptions options = {}) {
    resolver = std::make_unique<dns::Resolver>(*loop, std::move(options));
    return *resolver;
  }
  dns::Resolver& the_resolver() { return resolver != nullptr ? *resolver : make(); }

  /// Runs the simulation until the task has ended, and returns its result.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    spawn(*loop, [](Task<T> inner, std::optional<T>& into, sim::Simulation& in) -> Task<> {
      into.emplace(co_await std::move(inner));
      in.stop();
    }(std::move(task), result, simulation));
    simulation.run(std::chrono::hours(1));
    return std::move(result).value();
  }

  Found resolve(const std::string& host, AddressFamily family = AddressFamily::any) {
    return run(the_resolver().resolve(host, 80, family));
  }
  std::string text_of(const std::string& host, AddressFamily family = AddressFamily::any) {
    const Found found = resolve(host, family);
    if (!found) return found.error().message();
    std::string text;
    for (const Endpoint& endpoint : *found) text += (text.empty() ? "" : " ") + endpoint.address();
    return text;
  }
  std::uint64_t questions() const {
    std::uint64_t sum = 0;
    for (const auto& server : servers) sum += server->udp_questions + server->tcp_questions;
    return sum;
  }
  void pass(Duration time) { run(sleep(time)); }
  static Task<int> sleep(Duration time) {
    static_cast<void>(co_await sleep_for(time));
    co_return 0;
  }

  sim::Simulation simulation;
  sim::Host& client;
  std::unique_ptr<EventLoop> loop;
  std::vector<sim::Host*> hosts;
  std::vector<std::unique_ptr<EventLoop>> loops;
  std::vector<std::unique_ptr<NameServer>> servers;
  std::unique_ptr<dns::Resolver> resolver;
};

}  // namespace tambour::test
