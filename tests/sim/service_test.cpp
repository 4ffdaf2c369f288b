// A service and its clients in a thousand simulations: no answer is wrong, every question is
// answered in the end, and nothing leaks. The simulator must also find the seeded bugs (mutants).
#include "sim/service.h"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/process.h"
#include "support/scale.h"

namespace tambour::service_test {
namespace {

using namespace std::chrono_literals;

/// One server and three clients on separate hosts; the network is partitioned at random for a
/// minute and is reliable from then on.
void play(sim::Simulation& simulation, test::Mutant mutant) {
  sim::Host& server_host = simulation.add_host("server");
  EventLoop server_loop(server_host.loop_options());
  test::LineServer server(server_loop, server_host, 7000, mutant);
  struct Machine {
    sim::Host& host;
    EventLoop loop{host.loop_options()};
    std::optional<test::LineClient> client;
  };
  std::vector<std::unique_ptr<Machine>> machines;
  for (const char* name : {"one", "two", "three"}) {
    machines.push_back(std::make_unique<Machine>(simulation.add_host(name)));
    Machine& machine = *machines.back();
    machine.client.emplace(simulation, machine.loop, machine.host, server_host.endpoint(7000), 60);
  }
  for (int i = 0; i < 4; ++i) {
    const auto at = Duration(simulation.random(60'000'000'000));
    sim::Host& host = machines[simulation.random(machines.size())]->host;
    simulation.after(at, [&] { simulation.partition(server_host, host); });
    simulation.after(at + Duration(simulation.random(20'000'000'000)),
                     [&] { simulation.heal(server_host, host); });
  }
  // With resets forever, no client would finish.
  simulation.after(60s, [&] { simulation.options().stream_reset = 0; });
  simulation.after(80s, [&] { simulation.heal(); });

  const auto all_done = [&] {
    for (const auto& machine : machines) {
      if (!machine->client->done()) return false;
    }
    return true;
  };
  for (int i = 0; i < 60 && !all_done() && simulation.failure().empty(); ++i)
    simulation.run_for(1min);
  if (!all_done()) simulation.fail("not everything was answered");
  simulation.run_for(2min);
  if (server.connections() != 0) simulation.fail("the server still has connections");
  server.close();
  if (server_host.descriptors() != 0) simulation.fail("the server has left descriptors open");
}

std::optional<sim::Failure> try_seeds(std::uint64_t count, test::Mutant mutant) {
  return sim::simulate({.first = 1, .count = count},
                       [mutant](sim::Simulation& simulation) { play(simulation, mutant); });
}

TEST(SimulatedService, works_with_a_thousand_seeds) {
  const Duration before = test::processor_time();
  const auto failure = try_seeds(test::scaled(1000), test::Mutant::none);
  EXPECT_FALSE(failure) << failure->report();
  const std::chrono::duration<double> took = test::processor_time() - before;
  std::cout << test::scaled(1000) << " seeds in " << took.count() << " s of processor time\n";
  EXPECT_LT(took.count(), 60);
}

TEST(SimulatedService, the_mutants_are_found) {
  for (const test::Mutant mutant :
       {test::Mutant::forgets_short_write, test::Mutant::dies_of_early_reset}) {
    const auto failure = try_seeds(10'000, mutant);
    ASSERT_TRUE(failure) << "mutant " << int(mutant);
    std::cout << "mutant " << int(mutant) << " found at seed " << failure->seed << ": "
              << failure->message << std::endl;
    // The seed alone reproduces the failure.
    sim::Simulation again(failure->seed, sim::Options::rough(failure->seed));
    play(again, mutant);
    EXPECT_EQ(again.failure(), failure->message);
    EXPECT_TRUE(again.trace().ends_with(failure->trace_tail));
  }
}

std::string trace_of(std::uint64_t seed) {
  sim::Simulation simulation(seed, sim::Options::rough(seed));
  play(simulation, test::Mutant::none);
  return simulation.trace();
}

TEST(SimulatedService, the_same_seed_gives_the_same_trace_and_another_seed_another) {
  std::vector<std::string> traces;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    traces.push_back(trace_of(seed));
    EXPECT_GT(traces.back().size(), 1000);
    EXPECT_TRUE(trace_of(seed) == traces.back()) << "seed " << seed;
  }
  for (std::size_t i = 1; i < traces.size(); ++i) EXPECT_TRUE(traces[i] != traces[0]);
}

}  // namespace
}  // namespace tambour::service_test
