// World: scheduled steps in the order of their time, delays of the network, and partitions.
#include "sim/world.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "sim/machine.h"
#include "sim/sim.h"
#include "sim/sockets/channel.h"

namespace tambour::sim::detail {
namespace {

// Not zero, which programs often use for "never".
constexpr std::int64_t start_ns = 3600 * base::ns_per_s;

}  // namespace

World::World(std::uint64_t chosen_seed, const sim::Options& chosen)
    : seed(chosen_seed),
      options(chosen),
      random(chosen_seed),
      now_ns_(start_ns),
      wall_offset_ns_(chosen.wall_start.time_since_epoch().count() - start_ns) {}

World::~World() {
  base::check(loops.empty(),
              "Simulation destroyed before the loops that run in it; destroy those first");
  // Close the files first, so that events in flight find no open socket.
  for (Machine* machine : machines) machine->close_all();
  events_.clear();
}

void World::set_wall(std::int64_t wall_ns_wanted) {
  wall_offset_ns_ = wall_ns_wanted - now_ns_;
  trace_line("world") << "wall clock set to " << wall_ns_wanted;
  ++wall_changes_;
  for (Sim* loop : loops) loop->wake();
}

void World::schedule(std::int64_t at_ns, Callback<void()> function) {
  events_.push_back({at_ns > now_ns_ ? at_ns : now_ns_, scheduled_++, std::move(function)});
  std::push_heap(events_.begin(), events_.end(), &is_later);
}

void World::advance_to(std::int64_t ns) {
  while (next_event_ns() <= ns && next_event_ns() != base::end_of_time_ns) {
    std::pop_heap(events_.begin(), events_.end(), &is_later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ns_ = std::max(now_ns_, event.at_ns);
    event.function();
  }
  now_ns_ = std::max(now_ns_, ns);
}

void World::add_step(std::int64_t delay_ns, Callback<void()> step) {
  ++steps_;
  schedule_in(std::max<std::int64_t>(delay_ns, 0), [this, due = std::move(step)]() mutable {
    due_steps_.push_back(std::move(due));
    if (!holds_steps_) make_due_step();
  });
}

bool World::make_due_step() {
  if (due_steps_.empty()) return false;
  const Callback<void()> step = std::move(due_steps_.front());
  due_steps_.pop_front();
  --steps_;
  trace_line("world") << "step";
  step();
  return true;
}

std::int64_t World::draw_delay_ns() noexcept {
  const std::int64_t least_ns = std::max<std::int64_t>(options.delay_min.count(), 0);
  std::int64_t range_ns = std::max<std::int64_t>(options.delay_max.count() - least_ns, 0);
  // Each range is half as likely as the next narrower one.
  if (options.delay_mostly_short) range_ns >>= 6 - std::min(std::countr_zero(random.next()), 6);
  return random.between(least_ns, least_ns + range_ns);
}

bool World::is_cut(const Machine& from, const Machine& to) const noexcept {
  return !cuts_.empty() && cuts_.contains({from.number, to.number});
}

void World::cut(unsigned from, unsigned to) {
  if (from == to || !cuts_.emplace(from, to).second) return;
  trace_line("world") << machines[from - 1]->name << " cut from " << machines[to - 1]->name;
}

void World::heal(unsigned from, unsigned to) {
  if (cuts_.erase({from, to}) == 0) return;
  trace_line("world") << machines[from - 1]->name << " healed to " << machines[to - 1]->name;
  // Channels that another cut blocks add themselves again.
  for (const auto& stuck : std::exchange(stuck_, {})) {
    if (const auto channel = stuck.lock()) channel->resume();
  }
}

}  // namespace tambour::sim::detail
