// The ev_io watchers of one loop.
//
// The watchers of a descriptor form a list through `next`, latest first, and share one backend
// operation, whose events are the union of theirs. The backend knows only these records, so the
// user may free a watcher as soon as it is stopped. Events of the backend go directly to the
// pending watchers, not through another queue.
//
// The operation stays submitted, without events, while its descriptor has no watcher. The backend
// reads the events at the next poll, so it is notified of a change once between two polls instead
// of at each start and stop.
// polls, and not at each start and stop.
#pragma once

#include <cstdint>

#include <ev.h>

#include <tambour/detail/operation.h>

#include "array.h"
#include "backend/backend.h"
#include "common/fd_table.h"
#include "pending.h"

namespace tambour::libev {

struct Loop;

/// `active` of the loop's own watchers, which are not counted among its references.
inline constexpr int active_own = 2;

/// One descriptor. It does not move and exists until the loop is destroyed.
struct FdRecord final : detail::Operation {
  FdRecord(Loop& owner, int number) noexcept;

  Loop& loop;
  ev_io* first = nullptr;
  std::uint64_t noted_at = never;  ///< The poll number at the last submit().
  const ev_io* stopped = nullptr;  ///< Since then: the watcher stopped last,
  bool unverified = false;         ///< and whether revalidate() was called.

  static constexpr std::uint64_t never = 0;
};

class Descriptors {
 public:
  explicit Descriptors(Loop& loop) noexcept : loop_(loop) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  /// Adds a watcher to its descriptor.
  void add(ev_io& io) noexcept {
    FdRecord* const record = find(io.fd);
    if (record == nullptr || record->noted_at != polls_) [[unlikely]]
      return add_and_note(io);
    put_first(*record, io);
    if ((io.events & EV__IOFDSET) == 0) return;
    // Most often the watcher was stopped only to be modified by ev_io_set().
    if (record->stopped != &io || !record->unverified) [[unlikely]]
      return named_again(*record, io);
    io.events &= ~EV__IOFDSET;
  }

  void remove(ev_io& io) noexcept {
    FdRecord* const record = find(io.fd);
    // Nearly always there is one watcher.
    if (record == nullptr || record->first != &io || io.next != nullptr) [[unlikely]]
      return remove_and_note(io);
    record->first = nullptr;
    record->events = Events::none;
    if (record->noted_at != polls_) note(*record);
    record->stopped = &io;
  }

  /// Call before each poll of the backend, which applies the noted changes.
  void begin_poll() noexcept { ++polls_; }

  /// Feeds `events` to the watchers of a descriptor that ask for any of them.
  void feed(int fd, int events) noexcept;

  /// Calls f(fd, record) for each descriptor that ever had a watcher.
  template <class F>
  void for_each(F&& f) {
    records_.for_each([&f](FdRecord& record) { f(record.fd, record); });
  }

 private:
  struct Memory {
    static void* reallocate(void* memory, std::size_t bytes) noexcept {
      return libev::reallocate(memory, bytes);
    }
    static void free(void* memory) noexcept { libev::reallocate(memory, 0); }
  };

  [[nodiscard]] FdRecord* find(int fd) noexcept { return records_.find(fd); }
  static Events to_events(int events) noexcept {
    static_assert(int(Events::read) == EV_READ && int(Events::write) == EV_WRITE << 1);
    return Events((events & EV_READ) | (events & EV_WRITE) << 1);
  }
  static void put_first(FdRecord& record, ev_io& io) noexcept {
    io.next = reinterpret_cast<ev_watcher_list*>(record.first);
    record.first = &io;
    record.events |= to_events(io.events);
  }
  void add_and_note(ev_io& io) noexcept;
  void remove_and_note(ev_io& io) noexcept;
  void note(FdRecord& record) noexcept;
  void named_again(FdRecord& record, ev_io& io) noexcept;

  Loop& loop_;
  compat::FdTable<FdRecord, Memory> records_;
  std::uint64_t polls_ = FdRecord::never + 1;  ///< Including the next one.
};

}  // namespace tambour::libev
