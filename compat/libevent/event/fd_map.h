// The events of each descriptor of one base.
//
// The events of a descriptor form a list, latest first, and share one backend operation, whose
// events are the union of theirs. A change is only noted; the thread of the loop submits all noted
// changes before it waits, so that deleting and adding an event between two waits costs the kernel
// nothing.
#pragma once

#include <cstdint>

#include <event2/event_struct.h>

#include <tambour/detail/operation.h>

#include "common/fd_table.h"
#include "libevent/event/core.h"

struct event_base;

namespace tambour::libevent {

/// One descriptor. It does not move and exists until the base is freed.
struct FdRecord final : detail::Operation {
  FdRecord(event_base& owner, int number) noexcept;

  event_base& base;
  event* first = nullptr;
  FdRecord* next_changed = nullptr;
  FdRecord* next_ready = nullptr;
  std::int32_t came = 0;  ///< What the last wait reported.
  std::uint16_t readers = 0;
  std::uint16_t writers = 0;
  std::uint16_t closers = 0;  ///< Events that wait for EV_CLOSED.
  bool changed = false;       ///< In the list of changes.
  bool renewed = false;       ///< The number may refer to another file.
  bool is_ready = false;      ///< In the list of ready records.
};

class FdMap {
 public:
  explicit FdMap(event_base& base) noexcept : base_(base) {}
  FdMap(const FdMap&) = delete;
  FdMap& operator=(const FdMap&) = delete;

  /// Returns -1 if the descriptor cannot be watched, 1 if the backend has to be told, else 0.
  int add(event& ev) noexcept;
  int remove(event& ev) noexcept;

  /// Tells the backend. On the thread of the loop, or if no loop runs.
  void submit_changes() noexcept;
  /// Activates the events of the ready descriptors.
  void activate_ready() noexcept;
  /// Activates the events of a descriptor that wait for any of `events`.
  void activate(int fd, short events) noexcept;
  /// Called by the backend, without the lock.
  void note_ready(FdRecord& record) noexcept {
    if (record.is_ready) return;
    record.is_ready = true;
    record.next_ready = nullptr;
    *ready_last_ = &record;
    ready_last_ = &record.next_ready;
  }

  [[nodiscard]] FdRecord* find(int fd) noexcept { return records_.find(fd); }

  /// Calls f(record) for each descriptor, in ascending order, until it returns a value other than
  /// 0, and returns that.
  template <class F>
  int for_each(F&& f) {
    int result = 0;
    records_.for_each([&](FdRecord& record) {
      if (result == 0) result = f(record);
    });
    return result;
  }

  /// Returns all operations, after the backend was abandoned.
  void clear() noexcept;

 private:
  struct Memory {
    static void* reallocate(void* memory, std::size_t bytes) noexcept {
      return event_mm_realloc_(memory, bytes);
    }
    static void free(void* memory) noexcept { event_mm_free_(memory); }
  };

  /// Returns null, with errno, if there is no memory or no such descriptor.
  FdRecord* make(int fd) noexcept;
  [[nodiscard]] Events wanted_by(const FdRecord& record) const noexcept;
  void note_change(FdRecord& record) noexcept;
  void fail(FdRecord& record, int error) noexcept;

  event_base& base_;
  compat::FdTable<FdRecord, Memory> records_;
  FdRecord* changed_ = nullptr;
  FdRecord** changed_last_ = &changed_;
  FdRecord* ready_ = nullptr;
  FdRecord** ready_last_ = &ready_;
};

}  // namespace tambour::libevent
