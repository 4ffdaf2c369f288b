// Simulation::run(): runs the loops of a simulation.
//
// In each round, one loop that has due work runs one iteration; the seed chooses it if there are
// several. If no loop has due work, the virtual clock advances to the next deadline or event.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tambour/sim/simulation.h>

#include "loop/core.h"
#include "sim/sim.h"
#include "sim/world.h"

namespace tambour::sim {

namespace {

using detail::Sim;
using detail::World;

/// The pending work of all loops.
struct Agenda {
  std::vector<Sim*> due;
  /// When the first of the loops without due work will have some.
  std::int64_t next_ns = detail::base::end_of_time_ns;
  bool any_alive = false;
};

void collect_due(World& world, Agenda& agenda) {
  agenda.due.clear();
  agenda.next_ns = detail::base::end_of_time_ns;
  agenda.any_alive = false;
  for (Sim* sim : world.loops) {
    detail::loop::Core& core = *sim->core();
    if (core.take_stop()) sim->stopped = true;
    if (sim->stopped || !core.alive()) continue;
    agenda.any_alive = true;
    const std::int64_t until_ns = core.begin_host_wait();
    core.end_host_wait();
    if (until_ns <= world.now_ns()) {
      agenda.due.push_back(sim);
    } else {
      agenda.next_ns = std::min(agenda.next_ns, until_ns);
    }
  }
}

/// Advances the virtual clock to the next event, but not beyond the end.
void wait_for_next(World& world, const Agenda& agenda, std::int64_t end_ns) {
  std::int64_t next_ns = agenda.next_ns;
  if (next_ns != detail::base::end_of_time_ns) {
    const std::int64_t lateness_max_ns = world.options.lateness_max.count();
    next_ns = detail::base::saturating_add(next_ns, world.random.between(0, lateness_max_ns));
  }
  world.advance_to(std::min({next_ns, world.next_event_ns(), end_ns}));
}

/// Clears the stop requests of the simulation and its loops when the run returns or throws.
struct Stoppable {
  explicit Stoppable(World& stopped) noexcept : world(stopped) {}
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;
  ~Stoppable() {
    for (Sim* sim : world.loops) {
      sim->stopped = false;
      static_cast<void>(sim->core()->take_stop());
    }
    // Must come last: GCC 12 omits it during stack unwinding if it precedes the loop.
    world.stop = false;
  }
  World& world;
};

/// `to_the_end`: continue until `end_ns` even if no work is left.
End run_until(World& world, std::int64_t end_ns, bool to_the_end) {
  const Stoppable stoppable(world);
  Agenda agenda;
  while (!world.stop) {
    if (world.make_due_step()) continue;
    collect_due(world, agenda);
    if (!to_the_end && !agenda.any_alive && !world.any_steps()) return End::finished;
    if (world.now_ns() >= end_ns) return End::timeout;
    if (!agenda.due.empty()) {
      // The agenda is stale after this call, because callbacks may destroy loops. Steps may do so
      // too, including this loop, and may throw, so they are held until the call returns.
      const World::HoldSteps hold(world);
      agenda.due[world.random.below(agenda.due.size())]->core()->run_ready();
      continue;
    }
    const bool will_come =
        std::min(agenda.next_ns, world.next_event_ns()) != detail::base::end_of_time_ns;
    if (!to_the_end && !will_come) return End::stalled;
    wait_for_next(world, agenda, end_ns);
  }
  return End::stopped;
}

std::int64_t end_of(const World& world, Duration time) noexcept {
  return detail::base::saturating_add(world.now_ns(), std::max<std::int64_t>(time.count(), 0));
}

}  // namespace

End Simulation::run(Duration time_max) {
  return run_until(*world_, end_of(*world_, time_max), false);
}

End Simulation::run_for(Duration time) { return run_until(*world_, end_of(*world_, time), true); }

}  // namespace tambour::sim
