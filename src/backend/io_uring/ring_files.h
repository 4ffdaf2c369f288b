// The file operations that are pending or in flight on a ring.
//
// The kernel uses their memory, so each is tracked until its completion. No more operations are in
// flight than the completion queue has entries.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <liburing.h>

#include <tambour/detail/file_operation.h>

#include "base/ready_queue.h"

namespace tambour::detail::backend {

class RingFiles {
 public:
  RingFiles() = default;
  RingFiles(const RingFiles&) = delete;
  RingFiles& operator=(const RingFiles&) = delete;

  /// Queries which operations a new ring supports.
  void open(io_uring& ring) noexcept;
  [[nodiscard]] bool supports(detail::OperationKind kind) const noexcept;

  void submit(FileOperation& op) noexcept {
    op.handed_over = op.cancel_requested = op.unverified = false;
    op.probe = 0;
    op.misses = 0;
    unfinished_.push_back(op);
    if (next_ == nullptr) next_ = &op;
  }
  /// Returns true if the operation is in flight and the caller must submit its cancellation.
  [[nodiscard]] bool request_cancel(FileOperation& op) noexcept;

  [[nodiscard]] bool any_in_flight() const noexcept { return in_flight_count_ != 0; }

  [[nodiscard]] bool any_unfinished() const noexcept { return !unfinished_.empty(); }

  /// Returns the next operation to submit, which the caller must pass to prepare(), or null.
  [[nodiscard]] FileOperation* next() noexcept {
    return in_flight_count_ < in_flight_max_ ? next_ : nullptr;
  }
  void prepare(FileOperation& op, io_uring_sqe& entry) noexcept {
    next_ = unfinished_.after(op);
    ++in_flight_count_;
    op.handed_over = true;
    if (op.kind == detail::OperationKind::file_read) [[likely]] {
      ::io_uring_prep_read(&entry, op.fd, op.data, count_of(op.size), op.offset);
    } else {
      prepare_other(op, entry);
    }
    ::io_uring_sqe_set_data64(&entry, token_of(op));
  }

  [[nodiscard]] static bool is_own(std::uint64_t token) noexcept { return (token & own_bit) != 0; }
  [[nodiscard]] static std::uint64_t token_of(const FileOperation& op) noexcept {
    return reinterpret_cast<std::uintptr_t>(&op) | own_bit;
  }
  /// Returns null if the token belongs to another kind of entry, or to a probe.
  [[nodiscard]] static FileOperation* operation_of(std::uint64_t token) noexcept {
    if (!is_own(token) || (token & probe_bit) != 0) return nullptr;
    return at(token & ~own_bit);
  }
  void complete(const io_uring_cqe& completion, base::ReadyQueue& ready) noexcept {
    FileOperation* const op = operation_of(completion.user_data);
    if (op == nullptr) return answer_probe(completion, ready);
    if (was_cancelled(completion.res)) [[unlikely]]
      return complete_cancelled(*op, ready);
    end(*op, completion.res, ready);
  }

  /// Call if the kernel has lost a completion. Marks all operations that it may belong to, so that
  /// the caller probes for each of them.
  void revalidate_all() noexcept;
  [[nodiscard]] FileOperation* next_unverified() noexcept;
  void prepare_probe(FileOperation& op, io_uring_sqe& entry) noexcept;

  /// Call in the child after fork(2), whose ring does not have these operations.
  void cancel_all() noexcept;

  /// Operations that ended outside poll().
  [[nodiscard]] base::ReadyQueue& has_ended() noexcept { return ended_; }
  void take_ended(base::ReadyQueue& ready) noexcept {
    if (&ready != &ended_) ready.take(ended_);
  }
  [[nodiscard]] bool must_poll() const noexcept {
    return !ended_.empty() || any_unverified_ ||
           (next_ != nullptr && in_flight_count_ < in_flight_max_);
  }

 private:
  /// A completion carries the address as an integer.
  [[nodiscard]] static FileOperation* at(std::uint64_t address) noexcept {
    return reinterpret_cast<FileOperation*>(address);  // NOLINT(performance-no-int-to-ptr)
  }

  static constexpr std::uint64_t own_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t probe_bit = std::uint64_t{1} << 62;

  /// The kernel applies the same limit: MAX_RW_COUNT.
  [[nodiscard]] static unsigned count_of(std::size_t size) noexcept {
    constexpr std::size_t transfer_max = 0x7ffff000;
    return static_cast<unsigned>(size < transfer_max ? size : transfer_max);
  }
  [[nodiscard]] static bool was_cancelled(int result) noexcept {
    return result == -ECANCELED || result == -EINTR;
  }
  static void prepare_other(const FileOperation& op, io_uring_sqe& entry) noexcept;
  void complete_cancelled(FileOperation& op, base::ReadyQueue& ready) noexcept;
  void answer_probe(const io_uring_cqe& completion, base::ReadyQueue& ready) noexcept;

  void end(FileOperation& op, int result, base::ReadyQueue& ready) noexcept {
    if (op.handed_over) {
      --in_flight_count_;
    } else if (next_ == &op) {
      next_ = unfinished_.after(op);
    }
    op.InRing::unlink();
    // A file ring submits nothing without operations, so nothing else would clear this.
    if (in_flight_count_ == 0) any_unverified_ = false;
    op.result = result;
    ready.push(op);
  }

  /// Returns the first operation in flight, or null.
  [[nodiscard]] FileOperation* first_in_flight() const noexcept {
    return in_flight_count_ != 0 ? unfinished_.front() : nullptr;
  }
  /// Returns the operation in flight after `op`, or null.
  [[nodiscard]] FileOperation* next_in_flight(const FileOperation& op) const noexcept {
    FileOperation* const after = unfinished_.after(op);
    return after != next_ ? after : nullptr;
  }

  /// Those in flight, and then the pending ones, each in the order of submission.
  detail::IntrusiveList<FileOperation, RingFiles> unfinished_;
  FileOperation* next_ = nullptr;  ///< The first pending operation.
  std::size_t in_flight_count_ = 0;
  std::size_t in_flight_max_ = 1;
  bool any_unverified_ = false;
  std::uint64_t probes_ = 0;  ///< The number of probes made.
  unsigned kinds_ = 0;        ///< One bit per supported detail::OperationKind.
  base::ReadyQueue ended_;
};

}  // namespace tambour::detail::backend
