// Deterministic simulation for tests: virtual time, hosts, file descriptors and a network, all
// derived from one seed.
//
// An EventLoop on a sim::Host runs the program's own callbacks, but with a virtual clock and
// virtual file descriptors. Waiting takes no real time: the clock advances to the next event. The
// seed decides the order of all concurrent events, so a seed reproduces a run exactly.
// docs/simulation.md shows how to use it.
//
// Only operations on the host are simulated. A run is not reproducible if the program reads the
// real clock, uses real random numbers, or posts to a loop from another thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/sim/host.h>  // IWYU pragma: export

#pragma GCC visibility push(default)

namespace tambour::sim {

/// Delays, losses and other faults of the simulated network. Probabilities range from 0 (never) to
/// 1 (always). The defaults are a network with delays and without losses.
struct Options {
  // The network between two hosts. Within a host, data arrives at once.
  Duration delay_min = std::chrono::microseconds(50);
  Duration delay_max = std::chrono::microseconds(500);
  /// If true, half of all delays are close to the minimum; if false, delays are uniformly
  /// distributed.
  bool delay_mostly_short = true;
  double datagram_loss = 0;         ///< Probability that a datagram is lost.
  double datagram_duplication = 0;  ///< Probability that a datagram arrives twice.
  /// Probability that a datagram arrives late, by up to ten times delay_max.
  double datagram_reordering = 0;
  double stream_loss = 0;   ///< Probability that a segment is delayed by `retransmit_delay`.
  double stream_reset = 0;  ///< Probability that a segment resets its connection, on both ends.
  Duration retransmit_delay = std::chrono::milliseconds(200);
  Duration connect_timeout = std::chrono::seconds(127);  ///< Until ETIMEDOUT, as in tcp(7).
  Duration stream_timeout = std::chrono::seconds(924);   ///< For unacknowledged data.

  // System calls.
  /// Probability that a stream or file returns less than requested and available.
  double short_read = 0;
  double short_write = 0;  ///< Probability that a stream or file accepts less than its free space.
  double would_block = 0;  ///< Probability of EAGAIN although the file descriptor is ready.
  /// Probability of EMFILE or ENFILE when a file descriptor is created.
  double no_descriptors = 0;
  double no_memory = 0;  ///< Probability of ENOMEM or ENOBUFS when memory is needed.
  std::size_t stream_buffer_bytes = std::size_t{256} * 1024;    ///< Per direction.
  std::size_t datagram_buffer_bytes = std::size_t{208} * 1024;  ///< Per socket.
  std::size_t pipe_buffer_bytes = std::size_t{64} * 1024;

  // Loops.
  bool shuffle = true;  ///< Events that are ready at the same time are reported in random order.
  double spurious_wakeup = 0;  ///< Probability of a spurious wakeup.
  /// Probability that a wait reports a file descriptor that is not ready.
  double spurious_event = 0;
  Duration lateness_max{0};  ///< The maximum delay of the end of a wait.
  /// The virtual time per loop iteration, at least one nanosecond, so that time also advances for a
  /// loop that never waits.
  Duration iteration_time = std::chrono::microseconds(1);

  /// The initial wall-clock time: 2001-09-09 01:46:40 UTC. The monotonic clock starts at one hour.
  std::chrono::sys_time<Duration> wall_start{std::chrono::seconds(1'000'000'000)};

  /// Records a trace. Disabling it makes a run about twice as fast, but failure reports lack the
  /// trace.
  bool trace = true;

  /// A mixture of faults that depends on the seed; each fault ranges from absent to frequent. Tests
  /// with every fault enabled tend to fail in one way; varied mixtures find failures that only some
  /// mixtures cause.
  static Options rough(std::uint64_t seed) noexcept;
};

/// Why Simulation::run() returned.
enum class End : std::uint8_t {
  finished,  ///< No loop has anything left to wait for, or all loops were stopped.
  stopped,   ///< Simulation::stop() or fail() was called.
  stalled,   ///< Loops wait for events that can never occur.
  timeout,   ///< The time limit was reached.
};

/// A simulation.
///
/// Ownership: owns its hosts, clocks and the data in transit between hosts, but not the loops.
/// These must be destroyed first, which is checked.
/// Thread: the simulation and all its loops belong to the thread that created it.
/// Lifetime: cannot be moved.
/// Memory: running out of real memory terminates the program.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed = 1, const Options& options = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  /// Adds a host with one process, addresses (10.0.0.1 and fd00::1 for the first host), and a name
  /// for the trace. The simulation owns it.
  Host& add_host(std::string_view name);

  /// Runs all loops, one iteration at a time of a loop that has something to do, until none has
  /// anything left to wait for, or for at most `time_max` of virtual time. EventLoop::stop() ends a
  /// loop as it ends EventLoop::run(). Must not be called inside a callback. An exception thrown by
  /// a callback propagates out of run(), which can be called again.
  ///
  /// EventLoop::run() may also be called: it runs only that loop while virtual time advances.
  End run(Duration time_max = std::chrono::hours(24 * 365));

  /// Runs for exactly `time` of virtual time, whether or not the loops have something to do, for
  /// scenarios that inspect intermediate states. Returns `timeout` or `stopped`.
  End run_for(Duration time);

  /// Makes run() and run_for() return after the current iteration.
  void stop() noexcept;

  /// Reports a failure of the program under test, and stops. Only the first failure is kept.
  void fail(std::string_view why);
  /// The reported failure; empty if there is none.
  [[nodiscard]] const std::string& failure() const noexcept;

  /// Invokes `step` after `delay`, between two iterations, for example to create or heal a
  /// partition or to set the wall clock. A step that becomes due during an iteration runs after it.
  /// Under EventLoop::run() the step is invoked inside an iteration instead: it must then neither
  /// throw nor destroy that loop.
  void after(Duration delay, Callback<void()> step);

  /// Advances time inside a callback, to simulate a long computation. Data in transit arrives
  /// meanwhile; no loop runs.
  void spend(Duration time);

  /// The virtual time of the loops, and of the wall clock.
  [[nodiscard]] TimePoint now() const noexcept;
  [[nodiscard]] std::chrono::sys_time<Duration> wall_now() const noexcept;
  /// Sets the wall clock of all hosts, like clock_settime(2). Only wall-clock timers are affected.
  void set_wall_clock(std::chrono::sys_time<Duration> time);

  /// Cuts the connection from `from` to `to`: datagrams are lost; streams wait until it is healed,
  /// and fail with ETIMEDOUT after `stream_timeout`.
  void cut(Host& from, Host& to);
  void partition(Host& one, Host& other);  ///< In both directions.
  void isolate(Host& host);                ///< From all other hosts.
  void heal(Host& one, Host& other);
  void heal();  ///< All connections.

  /// The options. Changes affect later events.
  [[nodiscard]] Options& options() noexcept;
  [[nodiscard]] std::uint64_t seed() const noexcept;

  /// Random numbers for the scenario, derived from the seed: from 0 to `end` - 1, where `end` is at
  /// least 1; and true with a given probability.
  std::uint64_t random(std::uint64_t end) noexcept;
  bool chance(double probability) noexcept;

  /// The trace: one line per event, with the time in seconds, the host, and the event.
  [[nodiscard]] const std::string& trace() const noexcept;
  /// Adds a line to the trace.
  void note(std::string_view text);
  /// Passes each line, with its line feed, to `tracer` instead of storing it in trace(). An empty
  /// tracer restores the default.
  void set_tracer(Callback<void(std::string_view)> tracer);

 private:
  friend class Host;
  tambour::detail::OwnedPointer<detail::World> world_;
};

/// The seeds that simulate() runs.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
};

/// A run that has failed, with what is needed to repeat it.
struct Failure {
  std::uint64_t seed = 0;
  std::string message;     ///< The exception's message, or the text passed to Simulation::fail().
  std::string trace_tail;  ///< The last lines of the trace.

  /// A readable report: the seed, how to reproduce it, the reason, and the end of the trace.
  [[nodiscard]] std::string report() const;
};

/// Runs `scenario` in a new simulation for each seed, and returns the first failure: an exception
/// thrown by the scenario, or a call of Simulation::fail(). If the process aborts meanwhile, it
/// prints the current seed to standard error.
///
/// If the environment variable TAMBOUR_SIM_SEED is set, only that seed is run. `options` returns
/// the options for a seed.
[[nodiscard]] std::optional<Failure> simulate(
    Seeds seeds, const Callback<void(Simulation&)>& scenario,
    const Callback<Options(std::uint64_t)>& options = &Options::rough);

}  // namespace tambour::sim

#pragma GCC visibility pop
