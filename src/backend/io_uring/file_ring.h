// The ring of a loop that waits with epoll, poll or select: it executes file operations only. See
// docs/decisions/0023-file-ring.md.
#pragma once

#include <cstdint>

#include <tambour/detail/file_operation.h>
#include <tambour/detail/operation.h>
#include <tambour/loop/options.h>

#include "backend/io_uring/ring.h"
#include "base/process_number.h"
#include "base/ready_queue.h"

namespace tambour::detail::backend {

/// Operations are submitted together, before the loop waits. Most of them read or write the page
/// cache and complete during the submission. If some are still in progress when the loop waits,
/// their completion signals the eventfd that wakes up the loop.
class FileRing final : private Ring {
 public:
  /// The sizes are those of LoopOptions; `calls` counts the system calls.
  FileRing(unsigned submission_entries, unsigned completion_entries, std::uint64_t& calls) noexcept
      : Ring(submission_entries, completion_entries, calls) {}

  /// Creates the ring. `eventfd`: what wakes up the loop. Returns 0, or an errno value: EPERM if
  /// the thread is under a seccomp filter or the sysctl kernel.io_uring_disabled forbids rings,
  /// ENOSYS and EOPNOTSUPP if the kernel has none or is too old, and ENOMEM if RLIMIT_MEMLOCK is
  /// too small.
  int open(int eventfd) noexcept;

  [[nodiscard]] bool supports(detail::OperationKind kind) const noexcept {
    return ring_is_open() && files().supports(kind);
  }
  void submit(FileOperation& op) noexcept {
    files().submit(op);
    // An operation that continues after fork(2), which has closed its ring.
    if (!ring_is_open()) [[unlikely]]
      static_cast<void>(files().request_cancel(op));
  }
  void cancel(FileOperation& op) noexcept;
  void cancel_and_wait(FileOperation& op) noexcept;

  /// Submits what is pending, and appends the operations that have completed to `ready`. Returns
  /// true if the caller may omit this wait, because operations have completed. After a number of
  /// completions it returns false, so that file operations do not delay other events for long.
  bool transfer(base::ReadyQueue& ready) noexcept;
  /// Makes completions signal the eventfd from now on. Returns false if the caller must not wait,
  /// because there is something to transfer.
  bool begin_wait() noexcept;
  /// Call after waiting: appends the operations that have completed to `ready`.
  void end_wait(base::ReadyQueue& ready) noexcept;

  /// True if transfer() has something to do that the eventfd may not have shown.
  [[nodiscard]] bool must_transfer() const noexcept {
    return files().must_poll() ||
           (ring_is_open() && (any_entries() || (files().any_in_flight() && any_completions())));
  }

  /// Prepares for use by several threads, one at a time. Returns 0 or an errno value.
  int share() noexcept;
  /// Gives up the descriptor without closing it, see Backend::disown_if_lost().
  void disown() noexcept { disown_ring(); }
  /// Call in the child after fork(2). The operations of the parent are cancelled. The next open()
  /// creates another ring.
  void close_in_child() noexcept;

 private:
  void complete_other(const io_uring_cqe& /*completion*/,
                      base::ReadyQueue& /*ready*/) noexcept override {}
  /// The ring's memory is shared with the parent: a child must not take its completions.
  void check_process() const noexcept;

  int register_eventfd() noexcept;
  void set_signals(bool enabled) noexcept;

  int eventfd_ = -1;
  bool signals_ = false;  ///< Completions signal the eventfd.
  base::OwningProcess process_;
  unsigned completed_ = 0;  ///< Completions since transfer() last returned false.
};

}  // namespace tambour::detail::backend
