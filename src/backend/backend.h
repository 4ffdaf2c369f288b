// The interface between the loop and the kernel.
//
// A backend accepts operations and reports which of them have completed. It has no timers and
// invokes no callbacks: completed operations go to a queue, which the loop runs. All member
// functions except wake() must be called on the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/loop/options.h>

#include "backend/system.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/process_number.h"
#include "base/ready_queue.h"

namespace tambour::detail::backend {

class FdRecords;

/// What owns a backend: the core of a loop derives from it.
class Owner {
 public:
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

 protected:
  Owner() = default;
  ~Owner() = default;
};

class Backend {
 public:
  Backend() noexcept = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Starts an operation, which must not be destroyed until it completes or is cancelled. Cannot
  /// fail and invokes no callback: errors are reported in the operation's result. Submitting a
  /// `poll` operation again announces that its events or its trigger have changed.
  virtual void submit(detail::Operation& operation) noexcept = 0;

  /// Cancels an operation. A `poll` operation is returned to the caller immediately and does not
  /// complete. An operation whose memory is in use by the kernel still completes exactly once, with
  /// ECANCELED if the cancellation came first.
  virtual void cancel(detail::Operation& operation) noexcept = 0;

  /// Returns whether the backend supports operations of this kind. Every backend supports `poll`.
  /// The first query for another kind may open what these operations need.
  /// The loop runs unsupported operations on a thread pool.
  [[nodiscard]] virtual bool supports(detail::OperationKind /*kind*/) noexcept { return false; }

  /// Cancels an operation other than `poll` and blocks until the kernel no longer uses its memory.
  /// The operation is returned to the caller with its result and does not complete.
  virtual void cancel_and_wait(detail::Operation& /*operation*/) noexcept {}

  /// Submits pending changes, waits once for at most `timeout_ns` (negative: without limit), and
  /// appends completed operations to `ready`. May return early without events.
  virtual void poll(std::int64_t timeout_ns, base::ReadyQueue& ready) noexcept = 0;

  /// Like poll(), but waits until monotonic_ns() is `until_ns`, or without limit if that is
  /// end_of_time_ns. A loop with timers calls it for nearly every wait.
  virtual void poll_until(std::int64_t until_ns, base::ReadyQueue& ready) noexcept {
    poll(timeout_of(until_ns, monotonic_ns()), ready);
  }

  /// Opens what makes poll_until() cheaper, if that is possible. Call once, after open_wake_up().
  virtual void open_wait_timer() noexcept {}

  /// Opens the descriptor that wake() needs, if open_backend() has not done so. Call once, on the
  /// loop's thread.
  virtual Result<> open_wake_up() noexcept { return {}; }

  /// Ends the current or the next wait. Callable from any thread; async-signal-safe.
  virtual void wake() noexcept = 0;

  /// Announces that `fd` may now refer to a different open file.
  virtual void invalidate(int fd) noexcept = 0;

  /// Like invalidate(), for a descriptor that most likely still refers to the same file. The two
  /// differ only in cost: if the guess is wrong, one more system call is made.
  virtual void revalidate(int fd) noexcept { invalidate(fd); }

  /// Removes the registration of `fd`, which has no operations left but stays open because another
  /// loop takes it over.
  virtual void deregister(int /*fd*/) noexcept {}

  /// Closes `fd`, which must have no operations. First removes its registration if that would keep
  /// the file open (io_uring) or outlive the descriptor (epoll, if other processes hold
  /// duplicates).
  void close(int fd) noexcept {
    prepare_to_close(fd);
    system().close(fd);
  }

  /// Called when the last watcher of `fd` was stopped; the owner may close `fd` next.
  virtual void unwatched(int /*fd*/) noexcept {}

  /// Like release_unwatched_fds(), for one descriptor whose last watcher was stopped while the loop
  /// is not run.
  virtual void release_unwatched_fd(int /*fd*/) noexcept {}

  /// Called when the loop returns to its caller. Releases the kernel's references to descriptors
  /// that are no longer watched, because poll() may not be called again.
  virtual void release_unwatched_fds() noexcept {}

  /// Delivers events that the kernel did not report to the `poll` operations on a descriptor.
  virtual void feed(int fd, Events events, base::ReadyQueue& ready) noexcept = 0;

  /// The interest in each descriptor, for inspection; null if there is none.
  [[nodiscard]] virtual const FdRecords* records() const noexcept { return nullptr; }

  /// Call in the child after fork(2), before any descriptor is opened for the loop. If other code
  /// has closed the loop's descriptors, gives them up without closing them, because their numbers
  /// may refer to other files. Returns false if it gave them up, or if it cannot determine whether
  /// they were closed: the caller must then give up the descriptors that it owns for the loop too.
  virtual bool disown_if_lost() noexcept { return true; }

  /// Call in the child after fork(2). Replaces what is shared with the parent, without affecting
  /// the parent.
  virtual Result<> reopen() noexcept = 0;

  /// Returns all submitted operations to their owners without completing them.
  virtual void abandon() noexcept = 0;

  /// The monotonic clock that deadlines use, in nanoseconds. The simulator overrides it.
  [[nodiscard]] virtual std::int64_t monotonic_ns() const noexcept { return base::monotonic_ns(); }

  /// The wall clock in nanoseconds since 1970. The simulator overrides it.
  [[nodiscard]] virtual std::int64_t wall_ns() const noexcept { return base::wall_ns(); }

  /// True if both clocks are virtual, so that kernel timers cannot be used.
  [[nodiscard]] virtual bool has_virtual_time() const noexcept { return false; }

  /// The number of times a virtual wall clock has been set.
  [[nodiscard]] virtual std::uint64_t wall_changes() const noexcept { return 0; }

  /// The system calls that operate on this backend's descriptors.
  [[nodiscard]] virtual System& system() noexcept { return kernel(); }

  /// A descriptor that is readable if poll() would report events, for watching by another loop.
  /// Call it before each wait: the backend owns the descriptor, and poll() and reopen() may replace
  /// it. Fails with EOPNOTSUPP in a simulation.
  [[nodiscard]] virtual Result<int> fd() noexcept { return base::failure(EOPNOTSUPP); }

  /// Prepares the backend for use by several threads, one at a time.
  virtual Result<> share() noexcept { return {}; }

  /// True if poll() has changes to submit or events to report that fd() does not show.
  [[nodiscard]] virtual bool must_poll() const noexcept { return false; }

  /// Blocks for `ns` nanoseconds, without waking up for events or signals.
  virtual void pause(std::int64_t ns) noexcept;

  /// A pseudo-random number for delays and similar uses, not for secrets. The simulator overrides
  /// it.
  [[nodiscard]] virtual std::uint64_t random() noexcept;

  /// Sets the loop that owns this backend. The simulator uses it to schedule its loops.
  virtual void belong_to(Owner&) noexcept {}

  /// The number of system calls made so far.
  [[nodiscard]] std::uint64_t system_calls() const noexcept { return system_calls_; }

  [[nodiscard]] const BackendTraits& traits() const noexcept { return traits_; }

  /// Records that this backend replaces the requested one. `why` must have static storage duration.
  void set_fell_back(std::string_view why) noexcept { traits_.fallback_reason = why; }

 protected:
  /// The first step of close(). The default suits backends without kernel registrations.
  virtual void prepare_to_close(int /*fd*/) noexcept {}

  /// False in the child after fork(2) until reopen(): the kernel objects still belong to the
  /// parent, and removing a registration would remove it for the parent too.
  [[nodiscard]] bool is_of_this_process() const noexcept { return process_.is_current(); }
  /// Called by reopen() when the kernel objects belong to this process.
  void set_reopened() noexcept { process_ = {}; }

  /// The timeout of a wait that begins now.
  static std::int64_t timeout_of(std::int64_t until_ns, std::int64_t now_ns) noexcept {
    if (until_ns == base::end_of_time_ns) return -1;
    return until_ns > now_ns ? until_ns - now_ns : 0;
  }

  BackendTraits traits_{};
  std::uint64_t system_calls_ = 0;

 private:
  std::uint64_t random_state_ = 0;
  base::OwningProcess process_;
};

/// Returns the value of TAMBOUR_BACKEND if the options leave the choice to it and it names no
/// backend, else null. The accepted names are in `backend_names`.
[[nodiscard]] const char* unknown_backend(const LoopOptions& options) noexcept;
inline constexpr std::string_view backend_names = "auto, epoll, io_uring, poll or select";

/// Opens the backend that the options, then the environment (TAMBOUR_BACKEND), then the kernel
/// select. Fails with EINVAL if the environment names no backend.
Result<std::unique_ptr<Backend>> open_backend(const LoopOptions& options);

/// Like open_backend(), for a loop that may never be woken: wake() must not be called before
/// open_wake_up(). Saves a descriptor and the records up to its number.
Result<std::unique_ptr<Backend>> open_backend_without_wake_up(const LoopOptions& options);

}  // namespace tambour::detail::backend
