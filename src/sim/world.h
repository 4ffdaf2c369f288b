// The state that all hosts of a simulation share: time, scheduled events, network cuts and random
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/detail/namespaces.h>
#include <tambour/sim/simulation.h>

#include "base/clock.h"
#include "sim/random.h"
#include "sim/trace.h"

namespace tambour::sim::detail {

class Channel;
class Machine;
class Sim;

class World {
 public:
  World(std::uint64_t seed, const sim::Options& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Time.
  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] std::int64_t wall_ns() const noexcept { return now_ns_ + wall_offset_ns_; }
  void set_wall(std::int64_t wall_ns);
  [[nodiscard]] std::uint64_t wall_changes() const noexcept { return wall_changes_; }

  /// Schedules `function` for `at_ns`, or for now if that has passed. Events at the same time run
  /// in the order in which they were scheduled.
  void schedule(std::int64_t at_ns, Callback<void()> function);
  void schedule_in(std::int64_t delay_ns, Callback<void()> function) {
    schedule(base::saturating_add(now_ns_, delay_ns), std::move(function));
  }
  /// Returns end_of_time_ns if no event is scheduled.
  [[nodiscard]] std::int64_t next_event_ns() const noexcept {
    return events_.empty() ? base::end_of_time_ns : events_.front().at_ns;
  }
  /// Advances the clock to `ns` and runs the events that are due. The clock never moves backwards.
  void advance_to(std::int64_t ns);
  void advance_by_iteration() { advance_to(base::saturating_add(now_ns_, iteration_ns())); }

  /// Adds a step of the scenario. The simulation runs at least until the step has run.
  void add_step(std::int64_t delay_ns, Callback<void()> step);
  [[nodiscard]] bool any_steps() const noexcept { return steps_ > 0; }
  /// Runs the first step that is held back. Returns false if there is none.
  bool make_due_step();

  /// Sets, during its lifetime, whether steps that become due are held back.
  class HoldSteps {
   public:
    explicit HoldSteps(World& world, bool hold = true) noexcept
        : world_(world), former_(std::exchange(world.holds_steps_, hold)) {}
    HoldSteps(const HoldSteps&) = delete;
    HoldSteps& operator=(const HoldSteps&) = delete;
    ~HoldSteps() { world_.holds_steps_ = former_; }

   private:
    World& world_;
    bool former_;
  };

  // The network. Hosts are identified by their numbers, from 1.
  [[nodiscard]] std::int64_t draw_delay_ns() noexcept;
  [[nodiscard]] bool is_cut(const Machine& from, const Machine& to) const noexcept;
  void cut(unsigned from, unsigned to);
  void heal(unsigned from, unsigned to);
  /// Channel::resume() is called when any cut is healed.
  void add_stuck(std::weak_ptr<Channel> channel) { stuck_.push_back(std::move(channel)); }

  /// Starts a line of the trace.
  [[nodiscard]] Trace::Line trace_line(std::string_view subject) {
    return {options.trace ? &trace : nullptr, now_ns_, subject};
  }

  const std::uint64_t seed;
  sim::Options options;
  Random random;
  Trace trace;
  std::string failure;
  bool stop = false;
  std::vector<std::unique_ptr<sim::Host>> hosts;
  std::vector<Machine*> machines;  ///< The implementations of the hosts, in the same order.
  std::vector<Sim*> loops;

 private:
  struct Event {
    std::int64_t at_ns;
    std::uint64_t number;
    Callback<void()> function;
  };
  /// Orders a heap with the earliest event at the top.
  static bool is_later(const Event& one, const Event& other) noexcept {
    return std::pair(one.at_ns, one.number) > std::pair(other.at_ns, other.number);
  }
  [[nodiscard]] std::int64_t iteration_ns() const noexcept {
    return options.iteration_time.count() > 0 ? options.iteration_time.count() : 1;
  }

  std::int64_t now_ns_;
  std::int64_t wall_offset_ns_;
  std::uint64_t wall_changes_ = 0;
  std::vector<Event> events_;
  std::uint64_t scheduled_ = 0;
  std::size_t steps_ = 0;                   ///< The number of steps that have not run yet.
  std::deque<Callback<void()>> due_steps_;  ///< Steps that are due and held back.
  bool holds_steps_ = false;
  std::set<std::pair<unsigned, unsigned>> cuts_;
  std::vector<std::weak_ptr<Channel>> stuck_;
};

}  // namespace tambour::sim::detail
