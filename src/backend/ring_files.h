// The file operations that a ring has been given, or will be.
//
// The kernel borrows their memory, so each is followed until its completion. No more are handed
// over than the completion queue has entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include <liburing.h>

#include "op/file_operation.h"
#include "op/ready_queue.h"

namespace tambour::backend {

class RingFiles {
 public:
  RingFiles() = default;
  RingFiles(const RingFiles&) = delete;
  RingFiles& operator=(const RingFiles&) = delete;

  /// Asks a new ring what it can do.
  void open(io_uring& ring) noexcept;
  [[nodiscard]] bool takes(OperationKind kind) const noexcept;

  void submit(FileOperation& op) noexcept;
  /// True where the kernel is to be asked, which has it.
  [[nodiscard]] bool request_cancel(FileOperation& op) noexcept;

  [[nodiscard]] bool any_in_flight() const noexcept { return in_flight_ != nullptr; }

  /// The next to be handed over; null: none. It is to be prepared.
  [[nodiscard]] FileOperation* next() noexcept {
    return in_flight_count_ < in_flight_max_ ? static_cast<FileOperation*>(pending_) : nullptr;
  }
  void prepare(FileOperation& op, io_uring_sqe& entry) noexcept;

  [[nodiscard]] static bool is_own(std::uint64_t token) noexcept { return (token & own_bit) != 0; }
  [[nodiscard]] static std::uint64_t token_of(const FileOperation& op) noexcept {
    return reinterpret_cast<std::uintptr_t>(&op) | own_bit;
  }
  /// Null: it is not the token of one, or only that of a question about it.
  [[nodiscard]] static FileOperation* operation_of(std::uint64_t token) noexcept {
    if (!is_own(token) || (token & probe_bit) != 0) return nullptr;
    return at(token & ~own_bit);
  }
  void complete(const io_uring_cqe& completion, ReadyQueue& ready) noexcept;

  /// The kernel has lost a completion. For each operation that it may be, it is to be asked.
  void doubt_all() noexcept;
  [[nodiscard]] FileOperation* next_doubted() noexcept;
  void prepare_probe(FileOperation& op, io_uring_sqe& entry) noexcept;

  /// In the child after fork(2): they are the parent's.
  void cancel_all() noexcept;

  /// What has ended between two turns.
  [[nodiscard]] ReadyQueue& ended() noexcept { return ended_; }
  void take_ended(ReadyQueue& ready) noexcept {
    if (&ready != &ended_) ready.take(ended_);
  }
  [[nodiscard]] bool must_poll() const noexcept {
    return !ended_.empty() || any_doubted_ ||
           (pending_ != nullptr && in_flight_count_ < in_flight_max_);
  }

 private:
  /// What the ring hands back are numbers.
  [[nodiscard]] static FileOperation* at(std::uint64_t address) noexcept {
    return reinterpret_cast<FileOperation*>(address);  // NOLINT(performance-no-int-to-ptr)
  }

  static constexpr std::uint64_t own_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t probe_bit = std::uint64_t{1} << 62;

  static void put_first(Operation*& first, FileOperation& op) noexcept;
  void take_out(FileOperation& op) noexcept;
  void end(FileOperation& op, int result, ReadyQueue& ready) noexcept;
  void answer_probe(std::uint64_t probe, int result, ReadyQueue& ready) noexcept;

  // Lists by `next_on_fd`, as those of the descriptors' operations.
  Operation* pending_ = nullptr;
  Operation** pending_end_ = &pending_;
  Operation* in_flight_ = nullptr;
  std::size_t in_flight_count_ = 0;
  std::size_t in_flight_max_ = 1;
  bool any_doubted_ = false;
  std::uint64_t probes_ = 0;  ///< That were made.
  unsigned kinds_ = 0;        ///< A bit for each OperationKind.
  ReadyQueue ended_;
};

}  // namespace tambour::backend
