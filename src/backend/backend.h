// The contract between the loop and the kernel.
//
// A backend takes operations and says which of them are finished. It keeps no timers and calls
// nobody back: what is finished goes to a queue, which the loop runs. All functions belong to the
// loop's thread, but for wake().
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tambour/event_loop.h>
#include <tambour/operation.h>
#include <tambour/result.h>

#include "backend/system.h"
#include "base/clock.h"
#include "base/process_number.h"
#include "op/ready_queue.h"

namespace tambour::backend {

class Backend {
 public:
  Backend() noexcept {
    base::count_forks();
    take_over();
  }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Takes an operation until it is completed or cancelled. Cannot fail and calls nobody back: what
  /// goes wrong is the operation's result. Submitting a `poll` operation again says that its events
  /// or its trigger have changed.
  virtual void submit(Operation& operation) noexcept = 0;

  /// For a `poll` operation: it is the caller's again, at once. An operation that the kernel
  /// borrows memory from completes exactly once all the same, with ECANCELED if this came first.
  virtual void cancel(Operation& operation) noexcept = 0;

  /// Whether it takes operations of this kind, besides `poll`, which all do. If not, the loop has
  /// them done by threads.
  [[nodiscard]] virtual bool takes(OperationKind /*kind*/) const noexcept { return false; }

  /// For an operation other than `poll`: cancels it, and waits until the kernel has let go of what
  /// it borrowed. It is the caller's again, with its result, and does not complete.
  virtual void reclaim(Operation& /*operation*/) noexcept {}

  /// Hands over what was submitted, waits once for at most `timeout_ns` (negative: as long as it
  /// takes), and appends what is finished. Returns early for no reason at times.
  virtual void poll(std::int64_t timeout_ns, ReadyQueue& ready) noexcept = 0;

  /// Opens what wake() needs, if open_backend() has not. To be called once, on the loop's thread.
  virtual Result<> open_wake_up() noexcept { return {}; }

  /// Ends the wait of another thread, or the next one; async-signal-safe.
  virtual void wake() noexcept = 0;

  /// From now on the number `fd` may mean another open file than before.
  virtual void forget(int fd) noexcept = 0;

  /// The same where it most likely still means that file. Only the price differs: what is right for
  /// the one case, costs a system call more in the other.
  virtual void doubt(int fd) noexcept { forget(fd); }

  /// Nobody watches `fd` here any more, but it stays open: another loop goes on with it.
  virtual void let_go(int /*fd*/) noexcept {}

  /// Closes `fd`, on which no operation stands any more. Removes its registration first where that
  /// would keep the file open (io_uring), or outlive it (epoll, if other processes hold copies).
  void close(int fd) noexcept {
    prepare_to_close(fd);
    system().close(fd);
  }

  /// The last watcher of `fd` was stopped, and its owner may close the descriptor next.
  virtual void unwatched(int /*fd*/) noexcept {}

  /// The loop returns to its caller: what the kernel holds of descriptors that are not watched any
  /// more is released now, since the next poll() may never come.
  virtual void settle() noexcept {}

  /// Makes the `poll` operations on a descriptor see events that the kernel did not report.
  virtual void feed(int fd, Events events, ReadyQueue& ready) noexcept = 0;

  /// In the child after fork(2): replaces what is shared with the parent, which is left alone.
  virtual Result<> reopen() noexcept = 0;

  /// Operations that are still submitted become their owners' again, silently.
  virtual void abandon() noexcept = 0;

  /// The time that deadlines are measured in. The simulator has its own.
  [[nodiscard]] virtual std::int64_t monotonic_ns() const noexcept { return base::monotonic_ns(); }

  /// The wall clock in nanoseconds since 1970. The simulator has its own.
  [[nodiscard]] virtual std::int64_t wall_ns() const noexcept { return base::wall_ns(); }

  /// True where both clocks are the backend's own, so that no timer of the kernel knows of them.
  [[nodiscard]] virtual bool has_virtual_time() const noexcept { return false; }

  /// How often a virtual wall clock has been set.
  [[nodiscard]] virtual std::uint64_t wall_changes() const noexcept { return 0; }

  /// Where the descriptors are that this backend watches.
  [[nodiscard]] virtual System& system() noexcept { return kernel(); }

  /// What another loop watches to know that poll() would find something: readable then. It stays
  /// the backend's, and may be another one after poll() or reopen(). EOPNOTSUPP: there is none.
  [[nodiscard]] virtual Result<int> descriptor() noexcept {
    return std::unexpected(system_error(EOPNOTSUPP));
  }

  /// From now on different threads use it, though one at a time.
  virtual Result<> share() noexcept { return {}; }

  /// True where poll() has something to hand over or to report that the descriptor does not show.
  [[nodiscard]] virtual bool must_poll() const noexcept { return false; }

  /// Sleeps for so long, whatever happens meanwhile.
  virtual void pause(std::int64_t ns) noexcept;

  /// Chance, for delays and the like; nothing that is to be secret. The simulator has its own.
  [[nodiscard]] virtual std::uint64_t random() noexcept;

  /// Says whose backend it is. The simulator lets loops take turns.
  virtual void belong_to(loop::Core&) noexcept {}

  /// How many system calls it has made.
  [[nodiscard]] std::uint64_t system_calls() const noexcept { return system_calls_; }

  [[nodiscard]] const BackendTraits& traits() const noexcept { return traits_; }

  /// Says that this backend stands in for another one. `why` is static text.
  void set_fell_back(std::string_view why) noexcept { traits_.fell_back = why; }

 protected:
  /// The first half of close(). Its default is for backends that keep no registrations.
  virtual void prepare_to_close(int /*fd*/) noexcept {}

  /// False in the child after fork(2) until reopen(): what the kernel holds is the parent's then,
  /// and a registration that is removed is removed for the parent.
  [[nodiscard]] bool is_of_this_process() const noexcept {
    return process_ == base::process_number();
  }
  /// By the constructor, and by reopen() once that has succeeded.
  void take_over() noexcept { process_ = base::process_number(); }

  BackendTraits traits_{};
  std::uint64_t system_calls_ = 0;

 private:
  std::uint64_t random_state_ = 0;
  unsigned process_ = 0;
};

/// The value of TAMBOUR_BACKEND if the options leave the choice to it and it names no backend, else
/// null. What is accepted is in `backend_names`.
[[nodiscard]] const char* unknown_backend(const LoopOptions& options) noexcept;
inline constexpr std::string_view backend_names = "auto, epoll, io_uring, poll or select";

/// Opens what the options, the environment (TAMBOUR_BACKEND) and the kernel agree on, in that
/// order. EINVAL where the environment names no backend.
Result<std::unique_ptr<Backend>> open_backend(const LoopOptions& options);

/// The same for a loop that may never have to be woken: wake() must not be called before
/// open_wake_up(). Saves a descriptor and the records up to its number.
Result<std::unique_ptr<Backend>> open_backend_without_wake_up(const LoopOptions& options);

}  // namespace tambour::backend
