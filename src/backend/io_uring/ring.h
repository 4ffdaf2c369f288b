// An io_uring(7) with the file operations on it: what the backend io_uring and the file ring of the
// other backends share.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include <liburing.h>

#include <tambour/detail/file_operation.h>

#include "backend/io_uring/ring_files.h"
#include "base/ready_queue.h"

namespace tambour::detail::backend {

/// Derived classes submit entries of their own, and process their completions.
class Ring {
 public:
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

 protected:
  /// Completions with this user_data are ignored.
  static constexpr std::uint64_t nothing_to_do = ~std::uint64_t{0};

  static constexpr bool has_flag(unsigned set, unsigned flag) noexcept { return (set & flag) != 0; }

  /// The number of entries, and the counter of the system calls.
  Ring(unsigned submission_entries, unsigned completion_entries, std::uint64_t& calls) noexcept
      : submission_entries_(submission_entries),
        completion_entries_(completion_entries),
        calls_(calls) {}
  virtual ~Ring();

  /// Whether completions are deferred until events are requested, if the kernel can. This costs
  /// least, but deferred completions do not wake up those that wait for the ring's descriptor.
  enum class Deferral : std::uint8_t {
    none,
    hidden,
    flagged,  ///< any_withheld() reports them.
  };
  /// Returns 0 or an errno value.
  int open_ring(Deferral deferral) noexcept;
  void close_ring() noexcept;
  /// Replaces the ring by one whose descriptor reports completions. The operations in flight
  /// complete first. Returns 0 or an errno value; the ring is unchanged then.
  int reopen_without_deferring() noexcept;
  /// From now on several threads use the ring, one at a time. Call before the ring is opened again.
  void set_shared(bool shared) noexcept { shared_ = shared; }
  /// Gives up the descriptor without closing it. The ring is still unmapped.
  void disown_ring() noexcept { ring_.ring_fd = -1; }

  [[nodiscard]] bool ring_is_open() const noexcept { return ring_is_open_; }
  [[nodiscard]] const io_uring& ring() const noexcept { return ring_; }
  [[nodiscard]] io_uring& mutable_ring() noexcept { return ring_; }
  [[nodiscard]] bool defers_task_work() const noexcept { return defers_task_work_; }
  [[nodiscard]] RingFiles& files() noexcept { return files_; }
  [[nodiscard]] const RingFiles& files() const noexcept { return files_; }
  /// True if there are entries that the kernel has not accepted yet.
  [[nodiscard]] bool any_entries() const noexcept { return ::io_uring_sq_ready(&ring_) != 0; }
  /// True if the kernel has completions that it does not show before events are requested.
  [[nodiscard]] bool any_withheld() const noexcept {
    constexpr unsigned withheld = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;
    return (IO_URING_READ_ONCE(*ring_.sq.kflags) & withheld) != 0;
  }
  [[nodiscard]] bool any_completions() const noexcept {
    return ::io_uring_cq_ready(&ring_) != 0 || any_withheld();
  }

  /// Returns an entry to fill in. Completions that arrive meanwhile go to `ready`.
  io_uring_sqe* next_entry(base::ReadyQueue& ready) noexcept;
  /// Makes entries for the pending file operations.
  void hand_over_files(base::ReadyQueue& ready) noexcept;
  /// Submits all entries and waits for a completion, for at most `timeout_ns` (negative: without
  /// limit).
  void enter(std::int64_t timeout_ns) noexcept;
  /// Processes all completions, and returns their number.
  unsigned reap(base::ReadyQueue& ready) noexcept;
  void request_cancel(FileOperation& op) noexcept;
  [[noreturn]] static void fail_in_child() noexcept;
  /// Blocks until the operation has ended. Other operations that end are kept for the next
  /// hand_over_files().
  void cancel_file_and_wait(FileOperation& op) noexcept;

 private:
  /// A completion of an entry of the derived class.
  virtual void complete_other(const io_uring_cqe& completion, base::ReadyQueue& ready) noexcept = 0;
  /// The kernel has lost a completion.
  virtual void note_lost_other() noexcept {}

  int open_ring_with(unsigned flags) noexcept;
  /// Checks the result of io_uring_enter(2).
  void check_entered(int outcome) const noexcept;
  void note_lost() noexcept {
    files_.revalidate_all();
    note_lost_other();
  }

  unsigned submission_entries_;
  unsigned completion_entries_;
  std::uint64_t& calls_;
  io_uring ring_{};
  bool ring_is_open_ = false;
  bool defers_task_work_ = false;
  bool shared_ = false;
  pid_t opened_by_ = 0;  ///< A child of fork(2) must not use the ring.
  RingFiles files_;
};

}  // namespace tambour::detail::backend
