// The options of an event loop and the properties of its backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>

namespace tambour::detail::backend {
class Backend;
}  // namespace tambour::detail::backend

#pragma GCC visibility push(default)

namespace tambour {

/// The kernel interface that a loop waits with.
enum class BackendKind : std::uint8_t {
  /// The value of TAMBOUR_BACKEND if it is set, otherwise epoll; see docs/backends.md.
  automatic,
  epoll,     ///< epoll(7).
  io_uring,  ///< io_uring(7); falls back to epoll if the kernel or a sandbox forbids io_uring.
  poll,      ///< poll(2).
  select,    ///< select(2): only file descriptors below FD_SETSIZE.
  /// Virtual time and file descriptors: <tambour/sim/simulation.h>. Requires `simulated_host`.
  simulated,
};

namespace detail {

/// What a loop can run on instead of the real system: a sim::Host, see
/// <tambour/sim/simulation.h>.
class VirtualHost {
 public:
  [[nodiscard]] virtual Result<std::unique_ptr<backend::Backend>> open_backend() = 0;

 protected:
  ~VirtualHost() = default;
};

}  // namespace detail

/// Options of an EventLoop.
struct LoopOptions {
  BackendKind backend = BackendKind::automatic;

  /// The longest time for which the loop busy-polls before it waits. The loop polls only if recent
  /// events arrived at least that fast. Saves the kernel's wakeup latency (a few to tens of
  /// microseconds per event), but uses a full processor while it polls. Zero, the default, disables
  /// polling.
  Duration spin{0};

  /// The timer slack of the loop's thread (PR_SET_TIMERSLACK, prctl(2)): how late the kernel may
  /// end a wait in order to combine wakeups. Set when the loop is created. Zero, the default,
  /// leaves the slack unchanged, which is usually 50 µs. Independently of this option, waits in
  /// poll and select may end late by a thousandth of their length, and those in epoll if it has no
  /// timerfd (docs/backends.md). Waits of 100 ms and more in epoll have no slack otherwise.
  Duration timer_slack{0};

  /// Makes stats() report times, at the cost of two extra clock readings per iteration.
  bool measure_times = false;

  /// The number of entries of the submission and completion queues of the backend io_uring, and of
  /// the ring for files of the other backends, rounded up to a power of two. Small queues only cost
  /// extra system calls; no completion is lost.
  unsigned submission_entries = 256;
  unsigned completion_entries = 4096;

  /// The sim::Host that the loop runs on, with `automatic` or `simulated`; see
  /// sim::Host::loop_options(). Null: the loop runs on the real system.
  detail::VirtualHost* simulated_host = nullptr;
};

/// The properties of the backend that a loop uses.
struct BackendTraits {
  BackendKind kind;
  std::string_view name;         ///< "epoll", "io_uring", "poll", "select" or "sim".
  bool supports_edge_triggered;  ///< Edge-triggered watchers are supported (Trigger::edge).
  bool reports_peer_closed;      ///< Events::closed is reported.
  /// Probed kernel features, for example "SINGLE_ISSUER DEFER_TASKRUN".
  std::string_view features;
  std::string_view fallback_reason;  ///< Why the requested backend is not used; empty if it is.
};

}  // namespace tambour

#pragma GCC visibility pop
