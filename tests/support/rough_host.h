// A simulated host that behaves like the kernel at its worst: short transfers, late events, and
// signals, but neither missing descriptors nor missing memory.
#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>

namespace tambour::test {

/// Runs the tasks that `start(host, loop)` spawns, expects that they end and leave no descriptor
/// open, and returns the trace.
template <class Start>
std::string run_on_rough_host(std::uint64_t seed, const Start& start) {
  sim::Options options = sim::Options::rough(seed);
  options.no_descriptors = options.no_memory = 0;
  sim::Simulation simulation(seed, options);
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  start(host, loop);
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(host.descriptors(), 0U);
  return simulation.trace();
}

}  // namespace tambour::test
