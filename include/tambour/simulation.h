// A world to test programs in: virtual time, machines, descriptors and a network, out of one seed.
//
// An EventLoop on a SimulatedHost runs the program's own callbacks, but its clock is virtual and
// its descriptors are not the kernel's. Waiting takes no time: the clock moves on to whatever comes
// next. Whatever could happen in one order or another is decided by the seed, so that a seed
// repeats a run exactly, and another seed is another run. docs/simulation.md shows how to use it.
//
// The trap: only what goes through the host is simulated. A program that asks the real clock, draws
// real random numbers or lets another thread post to a loop has runs that no seed repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/callback.h>
#include <tambour/clock.h>
#include <tambour/simulated_host.h>  // IWYU pragma: export

namespace tambour {

/// How rough the world is. All chances are from 0, never, to 1, always. The defaults are a network
/// that takes its time and loses nothing.
struct SimulationOptions {
  // Between two hosts. Within one, what is sent has arrived.
  Duration delay_min = std::chrono::microseconds(50);
  Duration delay_max = std::chrono::microseconds(500);
  bool delay_mostly_short = true;   ///< Half of all delays near the least; else all are alike.
  double datagram_loss = 0;         ///< Chance that a datagram does not arrive,
  double datagram_duplication = 0;  ///< arrives twice,
  double datagram_reordering = 0;   ///< arrives up to ten longest delays late.
  double stream_loss = 0;           ///< Chance that a segment arrives `retransmit_delay` late.
  double stream_reset = 0;          ///< Chance that a segment resets its connection, at both ends.
  Duration retransmit_delay = std::chrono::milliseconds(200);
  Duration connect_timeout = std::chrono::seconds(127);  ///< Then ETIMEDOUT, as tcp(7).
  Duration stream_timeout = std::chrono::seconds(924);   ///< Of data that is not acknowledged.

  // System calls.
  double short_read = 0;   ///< Chance that a stream or file gives less than was asked and is there.
  double short_write = 0;  ///< Chance that a stream or file takes less than it has room for.
  double would_block = 0;  ///< Chance of EAGAIN although the descriptor is ready.
  double no_descriptors = 0;  ///< Chance of EMFILE or ENFILE where a descriptor is made.
  double no_memory = 0;       ///< Chance of ENOMEM or ENOBUFS where memory is needed.
  std::size_t stream_buffer_bytes = std::size_t{256} * 1024;    ///< Of one direction.
  std::size_t datagram_buffer_bytes = std::size_t{208} * 1024;  ///< Of one socket.
  std::size_t pipe_buffer_bytes = std::size_t{64} * 1024;

  // Loops.
  bool shuffle = true;       ///< What is ready at one time comes in any order.
  double early_wake_up = 0;  ///< Chance that a wait ends for no reason.
  double false_event = 0;    ///< Chance that a wait reports a descriptor that is not ready.
  Duration lateness_max{0};  ///< A wait ends up to so much after its deadline.
  /// How far the clock moves for each turn of a loop, at least a nanosecond: a loop that never
  /// waits must not stop the world.
  Duration turn_time = std::chrono::microseconds(1);

  /// 2001-09-09 01:46:40 UTC. The monotonic clock starts at one hour.
  std::chrono::sys_time<Duration> wall_start{std::chrono::seconds(1'000'000'000)};

  bool trace = true;  ///< Without it a run is about twice as fast, and a failure tells less.

  /// A different mixture of faults for each seed, each from none at all to frequent: tests that
  /// always see everything fail in one way at a time, and so meet what only one mixture shows.
  static SimulationOptions rough(std::uint64_t seed) noexcept;
};

enum class SimulationEnd : std::uint8_t {
  finished,  ///< No loop has anything left to wait for, or all were stopped.
  stopped,   ///< Simulation::stop() or fail() was called.
  stalled,   ///< Loops wait for what will never come.
  timeout,   ///< The time was up.
};

/// The world. Owns its hosts, its clocks and what is on its way between hosts; not the loops, which
/// have to be destroyed first, and which is checked. Belongs to the thread that made it, with all
/// of its loops. Cannot move. Out of memory, the real one, it ends the program.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed = 1, const SimulationOptions& options = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  /// A machine with one process, addresses (10.0.0.1 and fd00::1 for the first) and a name for the
  /// trace. Lives as long as the simulation.
  SimulatedHost& add_host(std::string_view name);

  /// Runs all loops, each turn that of one that has something to do, until none has anything left
  /// to wait for, but for no longer than `time_max` of virtual time. EventLoop::stop() ends a loop
  /// as it ends EventLoop::run(). Not to be called inside a callback. What a callback throws leaves
  /// run(), which can be called again.
  ///
  /// EventLoop::run() works too, and lets time pass for that loop alone: the others stand still.
  SimulationEnd run(Duration time_max = std::chrono::hours(24 * 365));

  /// The same for exactly `time`, whether or not any loop has something left to do: for scenarios
  /// that look at what has come of it in between. `timeout`, or `stopped`.
  SimulationEnd run_for(Duration time);

  /// Makes run() and run_for() return after the turn.
  void stop() noexcept;

  /// Says that the program under test did wrong, and stops. Only the first is kept.
  void fail(std::string_view why);
  /// Empty where nothing failed.
  [[nodiscard]] const std::string& failure() const noexcept;

  /// Calls `step` when `delay` has passed, between two turns: a partition, a healing, a jump of
  /// the wall clock. What becomes due in the middle of a turn waits for its end. EventLoop::run()
  /// knows of no end but its own, and calls it inside the turn: there it must neither throw nor
  /// destroy that loop.
  void after(Duration delay, Callback<void()> step);

  /// Inside a callback: lets time pass, as work does that takes long. What is on its way arrives
  /// meanwhile; no loop has its turn.
  void spend(Duration time);

  [[nodiscard]] TimePoint now() const noexcept;
  [[nodiscard]] std::chrono::sys_time<Duration> wall_now() const noexcept;
  /// Sets the wall clock of all hosts, as clock_settime(2): timers do not notice, but those that go
  /// by the wall clock.
  void set_wall_clock(std::chrono::sys_time<Duration> time);

  /// What `from` sends no longer reaches `to`: datagrams are lost, streams wait for healing and
  /// fail with ETIMEDOUT after `stream_timeout`.
  void cut(SimulatedHost& from, SimulatedHost& to);
  void partition(SimulatedHost& one, SimulatedHost& other);  ///< In both directions.
  void isolate(SimulatedHost& host);                         ///< From all others.
  void heal(SimulatedHost& one, SimulatedHost& other);
  void heal();  ///< Everything.

  /// The knobs; what is changed goes for what happens from then on.
  [[nodiscard]] SimulationOptions& options() noexcept;
  [[nodiscard]] std::uint64_t seed() const noexcept;

  /// Random numbers for the scenario itself, from 0 to below `end`, which is at least 1; and a yes
  /// or no.
  std::uint64_t random(std::uint64_t end) noexcept;
  bool chance(double probability) noexcept;

  /// What has happened, a line each: seconds, who, what.
  [[nodiscard]] const std::string& trace() const noexcept;
  /// Adds a line of the scenario's own.
  void note(std::string_view what);
  /// Gets each line, with its end, in place of trace(). An empty one puts things back.
  void set_tracer(Callback<void(std::string_view)> tracer);

 private:
  friend class SimulatedHost;
  std::unique_ptr<backend::sim::World> world_;
};

/// Which seeds simulate() tries.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
};

struct SimulationFailure {
  std::uint64_t seed = 0;
  std::string what;        ///< What was thrown, or told to Simulation::fail().
  std::string trace_tail;  ///< The last lines of the trace.

  /// For people: the seed, how to repeat it, the reason and the last of the trace.
  [[nodiscard]] std::string report() const;
};

/// Runs `scenario` in a world of its own for each seed, and returns the first failure: an exception
/// that left it, or a call of Simulation::fail(). A process that is aborted meanwhile says on
/// standard error which seed it was at.
///
/// Where the environment has TAMBOUR_SIM_SEED, that seed is the only one. `options` says how rough
/// the world of a seed is.
std::optional<SimulationFailure> simulate(
    Seeds seeds, const std::function<void(Simulation&)>& scenario,
    const std::function<SimulationOptions(std::uint64_t)>& options = &SimulationOptions::rough);

}  // namespace tambour
