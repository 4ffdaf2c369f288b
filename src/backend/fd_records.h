// The interest in each descriptor, and what is registered with the kernel.
//
// Every backend needs the same bookkeeping for `poll` operations: the operations on each
// descriptor, and the descriptors whose interest has changed since the last wait. Changes are only
// recorded, and applied once before the next wait, so that stop-set-start costs no system call. The
// exception is io_uring outside EventLoop::run(): it removes the poll of a stopped watcher at once,
// because the poll would keep the file open (Uring::release_unwatched_fds()).
//
// A descriptor can be closed and its number reused for another file without notice. `unverified`
// marks descriptors that may refer to another file than the registered one; generations distinguish
// events of the former file from those of the current one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tambour/detail/operation.h>

#include "base/mutant.h"
#include "base/probe.h"
#include "base/ready_queue.h"

namespace tambour::detail::backend {

/// The interest in one descriptor.
struct Interest {
  Events events = Events::none;
  Trigger trigger = Trigger::level;

  bool operator==(const Interest&) const = default;
};

struct FdRecord {
  detail::Hlist<detail::Operation> operations;  ///< Submitted on this descriptor.
  std::uint32_t generation = 0;                 ///< Of the current registration.
  std::int32_t next_changed = not_changed;
  Interest armed{};           ///< What is registered with the kernel.
  bool unverified = false;    ///< The descriptor may refer to another file now.
  bool likely = false;        ///< If `unverified`: it most likely does not.
  bool always_ready = false;  ///< epoll: a regular file, which epoll rejects.
  bool edge_is_due = false;   ///< An edge may have been missed: register again.
  bool left_behind = false;   ///< epoll: former files may still be registered.

  static constexpr std::int32_t not_changed = -2;
  static constexpr std::int32_t last_changed = -1;

  /// The union of the operations' interests; edge-triggered only if all of them are.
  [[nodiscard]] Interest wanted() const noexcept {
    Interest sum{Events::none, Trigger::edge};
    for (const detail::Operation* op = operations.front(); op != nullptr; op = op->next()) {
      sum.events |= op->events;
      if (op->trigger == Trigger::level) sum.trigger = Trigger::level;
    }
    if (sum.events == Events::none) sum.trigger = Trigger::level;
    return sum;
  }
};

class FdRecords {
 public:
  FdRecords() = default;
  /// `are_virtual`: the descriptors are simulated, and only open ones are submitted.
  explicit FdRecords(bool are_virtual) noexcept : virtual_(are_virtual) {}
  FdRecords(const FdRecords&) = delete;
  FdRecords& operator=(const FdRecords&) = delete;

  /// Adds a `poll` operation to its descriptor, or records that it has changed. If there is no
  /// memory for the descriptor's record, the operation completes with ENOMEM.
  void submit(detail::Operation& op) noexcept {
    if (!op.submitted()) {
      // A call at the end, so that the compiler needs no stack frame.
      if (!has_record(op.fd)) [[unlikely]]
        return add_record_and_submit(op);
      at(op.fd).operations.push_front(op);
    }
    // The kernel has already reported the current readiness, but not to this operation, or its
    // event was dropped because the watcher was stopped.
    if (op.trigger == Trigger::edge) at(op.fd).edge_is_due = true;
    note_change(op.fd);
  }

  void cancel(detail::Operation& op) noexcept {
    if (base::mutant != base::Mutant::stopped_is_invoked) op.unlink();
    op.unlist();
    note_change(op.fd);
  }

  /// Returns the record of a descriptor that has been registered. Records are never removed.
  [[nodiscard]] FdRecord& at(int fd) noexcept { return records_[static_cast<std::size_t>(fd)]; }

  [[nodiscard]] bool has_record(int fd) const noexcept {
    return fd >= 0 && static_cast<std::size_t>(fd) < records_.size();
  }

  /// Returns a generation of `fd` for a registration whose events belong to no record; it differs
  /// from those of all other registrations. Without a value if there is no memory for the record.
  [[nodiscard]] std::optional<std::uint32_t> take_generation(int fd) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  /// The records by descriptor; valid until one is added.
  [[nodiscard]] FdRecord* data() noexcept { return records_.data(); }
  [[nodiscard]] const FdRecord* data() const noexcept { return records_.data(); }

  void invalidate(int fd) noexcept {
    if (!has_record(fd)) return;
    at(fd).unverified = true;
    at(fd).likely = false;
    note_change(fd);
  }

  void revalidate(int fd) noexcept {
    if (!has_record(fd)) return;
    FdRecord& record = at(fd);
    if (!record.unverified) record.likely = true;
    record.unverified = true;
    note_change(fd);
  }

  void feed(int fd, Events events, base::ReadyQueue& ready) noexcept {
    if (!has_record(fd)) return;
    deliver(at(fd), events, ready);
  }

  void note_change(int fd) noexcept {
    FdRecord& record = at(fd);
    if (record.next_changed != FdRecord::not_changed) return;
    record.next_changed = FdRecord::last_changed;
    // The kernel reports ready descriptors in registration order, so registering in the order of
    // the changes is fair.
    (first_changed_ < 0 ? first_changed_ : at(latest_changed_).next_changed) = fd;
    latest_changed_ = fd;
  }

  /// Calls f(fd, record) once for each descriptor that has changed since the last call. Changes
  /// that f records are kept for the next call.
  template <class F>
  void take_changes(F&& f) {
    std::int32_t fd = first_changed_;
    first_changed_ = FdRecord::last_changed;
    while (fd >= 0) {
      FdRecord& record = at(fd);
      const std::int32_t next = record.next_changed;
      record.next_changed = FdRecord::not_changed;
      f(fd, record);
      fd = next;
    }
  }

  /// The kernel may have lost registrations: register everything again.
  void revalidate_all() noexcept;

  /// Call if nothing is registered any more: after fork(2), or with a new epoll set. Returns the
  /// number of descriptors to register again.
  std::size_t disarm_all() noexcept;

  /// Delivers `got` to the operations that asked for any of it. Returns false if none did.
  static bool deliver(FdRecord& record, Events got, base::ReadyQueue& ready) noexcept {
    if (has(got, Events::error | hang_up)) [[unlikely]]
      return deliver_broken(record, got, ready);
    detail::Operation* const op = record.operations.front();
    if (op == nullptr) return false;
    // Nearly always there is one operation.
    if (op->next() != nullptr) [[unlikely]]
      return deliver_to_all(record, got, ready);
    const Events hit = got & op->events;
    if (hit == Events::none) return false;
    complete(*op, hit, ready);
    return true;
  }

  /// Fails the operations on a descriptor with an errno value, or only those that asked for
  /// `events`.
  void fail(FdRecord& record, int error, base::ReadyQueue& ready,
            Events events = Events::none) noexcept;

  [[nodiscard]] bool any_changes() const noexcept {
    return first_changed_ != FdRecord::last_changed || any_failed();
  }

  /// Moves the operations that failed in submit() to `ready`.
  void take_failed(base::ReadyQueue& ready) noexcept { ready.take(failed_); }
  [[nodiscard]] bool any_failed() const noexcept { return !failed_.empty(); }

  /// Returns all operations to their owners without completing them.
  void abandon() noexcept;

 private:
  static constexpr Events hang_up = Events(0x010);  // POLLHUP

  static void complete(detail::Operation& op, Events hit, base::ReadyQueue& ready) noexcept {
    TAMBOUR_PROBE2(complete, &op, hit);
    op.result |= std::int32_t(hit);
    if (!op.linked()) ready.push(op);
  }

  static bool deliver_to_all(FdRecord& record, Events got, base::ReadyQueue& ready) noexcept;
  static bool deliver_broken(FdRecord& record, Events got, base::ReadyQueue& ready) noexcept;
  /// If there cannot be a record, the operation fails.
  void add_record_and_submit(detail::Operation& op) noexcept;
  int grow(int fd) noexcept;

  bool virtual_ = false;
  std::vector<FdRecord> records_;
  std::int32_t first_changed_ = FdRecord::last_changed;
  std::int32_t latest_changed_ = FdRecord::last_changed;  ///< The tail of that list, if not empty.
  base::ReadyQueue failed_;
};

}  // namespace tambour::detail::backend
