// Simulation: hosts, the network between them, the clock, and the failure of a run.
#include <tambour/sim/simulation.h>

#include <utility>

#include "sim/machine.h"
#include "sim/world.h"

namespace tambour::sim {

using detail::Machine;
using detail::Random;
using detail::World;

Options Options::rough(std::uint64_t seed) noexcept {
  // A stream of numbers independent of the simulation's own.
  Random random(~seed);
  // Zero in half of all simulations, otherwise up to `often`.
  const auto some = [&random](double often) {
    constexpr double levels = 8;
    return random.chance(0.5) ? 0.0 : often * double(1 + random.below(8)) / levels;
  };
  Options options;
  options.delay_max = Duration(random.between(100'000, 50'000'000));
  options.delay_mostly_short = random.chance(0.5);
  options.datagram_loss = some(0.3);
  options.datagram_duplication = some(0.2);
  options.datagram_reordering = some(0.3);
  options.stream_loss = some(0.1);
  options.stream_reset = some(0.01);
  options.short_read = some(0.8);
  options.short_write = some(0.8);
  options.would_block = some(0.2);
  options.no_descriptors = some(0.1);
  options.spurious_wakeup = some(0.2);
  options.spurious_event = some(0.1);
  options.lateness_max = Duration(random.chance(0.5) ? 0 : random.between(0, 10'000'000));
  if (random.chance(0.3)) options.stream_buffer_bytes = 1 + random.below(4096);
  return options;
}

Simulation::Simulation(std::uint64_t seed, const Options& options)
    : world_(std::make_unique<World>(seed, options)) {}

Simulation::~Simulation() = default;

Host& Simulation::add_host(std::string_view name) {
  const auto number = unsigned(world_->hosts.size() + 1);
  auto machine = std::make_unique<Machine>(*world_, name, number);
  world_->machines.push_back(machine.get());
  world_->hosts.push_back(std::make_unique<Host>(std::move(machine)));
  return *world_->hosts.back();
}

void Simulation::stop() noexcept { world_->stop = true; }

void Simulation::fail(std::string_view why) {
  world_->trace_line("world") << "failed: " << why;
  if (world_->failure.empty()) world_->failure = why.empty() ? "failed" : why;
  world_->stop = true;
}

const std::string& Simulation::failure() const noexcept { return world_->failure; }

void Simulation::after(Duration delay, Callback<void()> step) {
  world_->add_step(delay.count(), std::move(step));
}

void Simulation::spend(Duration time) {
  world_->advance_to(detail::base::saturating_add(world_->now_ns(), time.count()));
}

TimePoint Simulation::now() const noexcept { return TimePoint(Duration(world_->now_ns())); }

std::chrono::sys_time<Duration> Simulation::wall_now() const noexcept {
  return std::chrono::sys_time<Duration>(Duration(world_->wall_ns()));
}

void Simulation::set_wall_clock(std::chrono::sys_time<Duration> time) {
  world_->set_wall(time.time_since_epoch().count());
}

void Simulation::cut(Host& from, Host& to) {
  world_->cut(from.machine_->number, to.machine_->number);
}

void Simulation::partition(Host& one, Host& other) {
  cut(one, other);
  cut(other, one);
}

void Simulation::isolate(Host& host) {
  for (const auto& other : world_->hosts) partition(host, *other);
}

void Simulation::heal(Host& one, Host& other) {
  world_->heal(one.machine_->number, other.machine_->number);
  world_->heal(other.machine_->number, one.machine_->number);
}

void Simulation::heal() {
  for (const auto& one : world_->hosts) {
    for (const auto& other : world_->hosts) heal(*one, *other);
  }
}

Options& Simulation::options() noexcept { return world_->options; }

std::uint64_t Simulation::seed() const noexcept { return world_->seed; }

std::uint64_t Simulation::random(std::uint64_t end) noexcept { return world_->random.below(end); }

bool Simulation::chance(double probability) noexcept { return world_->random.chance(probability); }

const std::string& Simulation::trace() const noexcept { return world_->trace.text(); }

void Simulation::note(std::string_view text) { world_->trace_line("note") << text; }

void Simulation::set_tracer(Callback<void(std::string_view)> tracer) {
  world_->trace.set_tracer(std::move(tracer));
}

}  // namespace tambour::sim
