// What the loop wants of each descriptor, and what the kernel was last told.
//
// Every backend needs the same bookkeeping for `poll` operations: which of them stand on a
// descriptor, and which descriptors have changed since the kernel was last told. Changes are only
// noted, and looked at once before the next wait, so that stop-set-start costs no system call.
//
// The trap is the number. A descriptor can be closed and its number given to another file without
// anybody telling us. `unsure` marks numbers that may mean another file than the kernel was told
// about; generations tell events of the former file from those of the latter.
#pragma once

#include <cstdint>
#include <vector>

#include <tambour/operation.h>

#include "base/canary.h"
#include "base/probe.h"
#include "op/ready_queue.h"

namespace tambour::backend {

/// What is asked of one descriptor.
struct Interest {
  Events events = Events::none;
  Trigger trigger = Trigger::level;

  bool operator==(const Interest&) const = default;
};

struct FdRecord {
  Operation* first = nullptr;    ///< The operations that stand on this descriptor.
  std::uint32_t generation = 0;  ///< Which of the number's registrations the kernel holds.
  std::int32_t next_changed = not_changed;
  Interest armed{};           ///< What the kernel was told.
  bool unsure = false;        ///< The number may mean another file since;
  bool likely = false;        ///< it most likely does not.
  bool always_ready = false;  ///< epoll: a regular file, which it refuses.
  bool edge_is_due = false;   ///< An edge may have been missed: the kernel is to look again.
  bool left_behind = false;   ///< epoll: it may hold registrations of former files too.

  static constexpr std::int32_t not_changed = -2;
  static constexpr std::int32_t last_changed = -1;

  /// The union of what the operations ask for; edges only if all of them do.
  [[nodiscard]] Interest wanted() const noexcept {
    Interest sum{Events::none, Trigger::edge};
    for (const Operation* op = first; op != nullptr; op = op->next_on_fd) {
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
  /// `are_virtual`: the descriptors are not the kernel's, and only open ones are submitted.
  explicit FdRecords(bool are_virtual) noexcept : virtual_(are_virtual) {}
  FdRecords(const FdRecords&) = delete;
  FdRecords& operator=(const FdRecords&) = delete;

  /// Puts a `poll` operation on its descriptor, or notes that it has changed. Where there is no
  /// memory for the descriptor's record, the operation completes with ENOMEM.
  void submit(Operation& op) noexcept {
    if (op.link_on_fd == nullptr) {
      if (!knows(op.fd) && !make_room(op)) [[unlikely]]
        return;
      link(op);
    }
    // What is ready already has been reported, but not to this operation, or not for good: an event
    // that was due is dropped when its watcher stops.
    if (op.trigger == Trigger::edge) at(op.fd).edge_is_due = true;
    note_change(op.fd);
  }

  void cancel(Operation& op) noexcept {
    if (base::canary != base::Canary::stopped_is_told) op.unlink();
    *op.link_on_fd = op.next_on_fd;
    if (op.next_on_fd != nullptr) op.next_on_fd->link_on_fd = op.link_on_fd;
    op.link_on_fd = nullptr;
    note_change(op.fd);
  }

  /// The record of a descriptor that the kernel was told of, and so has one: records are not
  /// removed.
  [[nodiscard]] FdRecord& at(int fd) noexcept { return records_[static_cast<std::size_t>(fd)]; }

  [[nodiscard]] bool knows(int fd) const noexcept {
    return fd >= 0 && static_cast<std::size_t>(fd) < records_.size();
  }

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }

  void forget(int fd) noexcept {
    if (!knows(fd)) return;
    at(fd).unsure = true;
    at(fd).likely = false;
    note_change(fd);
  }

  void doubt(int fd) noexcept {
    if (!knows(fd)) return;
    FdRecord& record = at(fd);
    if (!record.unsure) record.likely = true;
    record.unsure = true;
    note_change(fd);
  }

  void feed(int fd, Events events, ReadyQueue& ready) noexcept {
    if (!knows(fd)) return;
    deliver(at(fd), events, ready);
  }

  void note_change(int fd) noexcept {
    FdRecord& record = at(fd);
    if (record.next_changed != FdRecord::not_changed) return;
    record.next_changed = FdRecord::last_changed;
    // The kernel reports what is ready in the order in which it was told of it: first come, first
    // served, there too.
    (first_changed_ < 0 ? first_changed_ : at(latest_changed_).next_changed) = fd;
    latest_changed_ = fd;
  }

  /// Calls f(fd, record) once for each descriptor that has changed since the last time. Changes
  /// that f notes are left for the next time.
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

  /// What the kernel was told may have ended unseen: all is to be told again.
  void doubt_all() noexcept;

  /// The kernel was told nothing: after fork, or with a new epoll set. Returns how many descriptors
  /// have to be registered anew.
  std::size_t disarm_all() noexcept;

  /// Gives `got` to the operations that asked for any of it. False: none did.
  static bool deliver(FdRecord& record, Events got, ReadyQueue& ready) noexcept {
    if (has(got, Events::error | hang_up)) [[unlikely]]
      return deliver_broken(record, got, ready);
    Operation* const op = record.first;
    if (op == nullptr) return false;
    // Nearly always one.
    if (op->next_on_fd != nullptr) [[unlikely]]
      return deliver_to_all(record, got, ready);
    const Events hit = got & op->events;
    if (hit == Events::none) return false;
    complete(*op, hit, ready);
    return true;
  }

  /// Ends the operations on a descriptor with an errno value, or only those that ask for `what`.
  void fail(FdRecord& record, int error, ReadyQueue& ready, Events what = Events::none) noexcept;

  [[nodiscard]] bool any_changes() const noexcept {
    return first_changed_ != FdRecord::last_changed || any_failed();
  }

  /// Moves what has failed in submit.
  void take_failed(ReadyQueue& ready) noexcept { ready.take(failed_); }
  [[nodiscard]] bool any_failed() const noexcept { return !failed_.empty(); }

  /// All operations become their owners' again.
  void abandon() noexcept;

 private:
  static constexpr Events hang_up = Events(0x010);  // POLLHUP

  static void complete(Operation& op, Events hit, ReadyQueue& ready) noexcept {
    TAMBOUR_PROBE2(complete, &op, hit);
    op.result |= std::int32_t(hit);
    if (!op.linked()) ready.push(op);
  }

  static bool deliver_to_all(FdRecord& record, Events got, ReadyQueue& ready) noexcept;
  static bool deliver_broken(FdRecord& record, Events got, ReadyQueue& ready) noexcept;
  void link(Operation& op) noexcept {
    FdRecord& record = at(op.fd);
    op.next_on_fd = record.first;
    op.link_on_fd = &record.first;
    if (record.first != nullptr) record.first->link_on_fd = &op.next_on_fd;
    record.first = &op;
  }
  /// False where there cannot be a record; the operation has failed then.
  bool make_room(Operation& op) noexcept;
  int grow(int fd) noexcept;

  bool virtual_ = false;
  std::vector<FdRecord> records_;
  std::int32_t first_changed_ = FdRecord::last_changed;
  std::int32_t latest_changed_ =
      FdRecord::last_changed;  ///< The end of that list, if there is one.
  ReadyQueue failed_;
};

}  // namespace tambour::backend
