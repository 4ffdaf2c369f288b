// simulate(): runs a scenario with many seeds, and reports which one failed, why, and how to
// reproduce it. Also what a seed determines.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "sim/random.h"

namespace tambour::simulate_test {
namespace {

using namespace std::chrono_literals;

TEST(Simulate, every_seed_is_tried_once) {
  std::vector<std::uint64_t> tried;
  const auto failure = sim::simulate({.first = 5, .count = 4}, [&](sim::Simulation& simulation) {
    tried.push_back(simulation.seed());
  });
  EXPECT_FALSE(failure);
  EXPECT_EQ(tried, (std::vector<std::uint64_t>{5, 6, 7, 8}));
}

TEST(Simulate, the_first_failure_is_reported) {
  const auto failure = sim::simulate({}, [](sim::Simulation& simulation) {
    simulation.note("something happens");
    if (simulation.seed() < 7) return;
    simulation.fail("the first reason");
    simulation.fail("the second reason");
  });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->seed, 7);
  EXPECT_EQ(failure->message, "the first reason");
  EXPECT_NE(failure->trace_tail.find("note something happens\n"), std::string::npos);
  const std::string report = failure->report();
  EXPECT_TRUE(report.starts_with("seed 7 failed: the first reason\n")) << report;
  EXPECT_NE(report.find("TAMBOUR_SIM_SEED=7\n"), std::string::npos) << report;
}

TEST(Simulate, an_exception_is_a_failure) {
  auto failure = sim::simulate({}, [](sim::Simulation&) { throw std::runtime_error("thrown"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "thrown");
  failure = sim::simulate({}, [](sim::Simulation&) { throw 1; });
  ASSERT_TRUE(failure);
  EXPECT_FALSE(failure->message.empty());
}

TEST(Simulate, the_tail_of_a_long_trace_is_whole_lines) {
  const auto failure = sim::simulate({}, [](sim::Simulation& simulation) {
    for (int i = 0; i < 10'000; ++i) simulation.note("line");
    simulation.fail("long");
  });
  ASSERT_TRUE(failure);
  EXPECT_LT(failure->trace_tail.size(), 4100);
  EXPECT_TRUE(failure->trace_tail.starts_with("3600.000000000 note line\n"));
}

TEST(Simulate, the_environment_names_the_seed) {
  ::setenv("TAMBOUR_SIM_SEED", "42", 1);
  std::vector<std::uint64_t> tried;
  const auto note_seed = [&](sim::Simulation& simulation) { tried.push_back(simulation.seed()); };
  EXPECT_FALSE(sim::simulate({}, note_seed));
  ::setenv("TAMBOUR_SIM_SEED", "many", 1);
  EXPECT_THROW(sim::simulate({}, note_seed), std::system_error);
  ::unsetenv("TAMBOUR_SIM_SEED");
  EXPECT_EQ(tried, std::vector<std::uint64_t>{42});
}

TEST(SimulateDeathTest, a_process_that_aborts_prints_its_seed) {
  const auto abort_at_three = [] {
    static_cast<void>(sim::simulate({}, [](sim::Simulation& simulation) {
      if (simulation.seed() == 3) std::abort();
    }));
  };
  EXPECT_DEATH(abort_at_three(), "repeat it with TAMBOUR_SIM_SEED=3");
}

TEST(SimulateDeathTest, destroying_a_simulation_before_its_loops_aborts) {
  const auto destroy_first = [] {
    auto simulation = std::make_unique<sim::Simulation>();
    const EventLoop loop(simulation->add_host("host").loop_options());
    simulation.reset();
  };
  EXPECT_DEATH(destroy_first(), "destroyed before the loops");
}

TEST(SimulationTrace, lines_go_to_a_tracer_instead) {
  sim::Simulation simulation;
  std::string lines;
  simulation.set_tracer([&](std::string_view line) { lines += line; });
  simulation.note("reported");
  EXPECT_EQ(lines, "3600.000000000 note reported\n");
  EXPECT_EQ(simulation.trace(), "");
  simulation.set_tracer({});
  simulation.note("kept");
  EXPECT_EQ(simulation.trace(), "3600.000000000 note kept\n");
  simulation.options().trace = false;
  simulation.note("dropped");
  EXPECT_EQ(simulation.trace(), "3600.000000000 note kept\n");
}

// Expected values from the reference implementation, seeded with four outputs of SplitMix64(0): a
// run must be reproducible on every platform.
TEST(SimulationRandom, numbers_are_those_of_the_algorithm) {
  sim::detail::Random random(0);
  const std::array<std::uint64_t, 3> expected{0x99ec5f36cb75f2b4, 0xbf6e1f784956452a,
                                              0x1a5f849d4933e6e0};
  for (const std::uint64_t number : expected) EXPECT_EQ(random.next(), number);
}

TEST(SimulationRandom, ranges_are_kept_and_filled) {
  sim::Simulation simulation;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(simulation.random(10));
  EXPECT_EQ(seen.size(), 10);
  EXPECT_EQ(*seen.rbegin(), 9);
  int yes = 0;
  for (int i = 0; i < 1000; ++i) yes += simulation.chance(0.3) ? 1 : 0;
  EXPECT_NEAR(yes, 300, 60);
  EXPECT_FALSE(simulation.chance(0));
  EXPECT_TRUE(simulation.chance(1));
}

TEST(SimulationRandom, rough_options_differ_between_seeds) {
  std::set<double> losses;
  int calm = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto options = sim::Options::rough(seed);
    losses.insert(options.datagram_loss);
    if (options.datagram_loss == 0) ++calm;
  }
  EXPECT_GT(losses.size(), 5);
  EXPECT_NEAR(calm, 50, 20);
}

}  // namespace
}  // namespace tambour::simulate_test
