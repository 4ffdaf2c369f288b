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
  ~FdMap();

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

  [[nodiscard]] FdRecord* find(int fd) noexcept {
    const auto number = static_cast<unsigned>(fd);  // Out of range if negative.
    const unsigned chunk = number / chunk_size;
    if (chunk >= chunk_count_ || chunks_[chunk] == nullptr) return nullptr;
    return chunks_[chunk] + number % chunk_size;
  }

  /// Calls f(record) for each descriptor, in ascending order, until it returns a value other than
  /// 0, and returns that.
  template <class F>
  int for_each(F&& f) {
    for (unsigned chunk = 0; chunk < chunk_count_; ++chunk) {
      if (chunks_[chunk] == nullptr) continue;
      for (unsigned i = 0; i < chunk_size; ++i) {
        if (const int result = f(chunks_[chunk][i])) return result;
      }
    }
    return 0;
  }

  /// Returns all operations, after the backend was abandoned.
  void clear() noexcept;

 private:
  static constexpr unsigned chunk_size = 16;

  /// Returns null, with errno, if there is no memory or no such descriptor.
  FdRecord* make(int fd) noexcept;
  [[nodiscard]] Events wanted_by(const FdRecord& record) const noexcept;
  void note_change(FdRecord& record) noexcept;
  void fail(FdRecord& record, int error) noexcept;

  event_base& base_;
  FdRecord** chunks_ = nullptr;
  unsigned chunk_count_ = 0;
  FdRecord* changed_ = nullptr;
  FdRecord** changed_last_ = &changed_;
  FdRecord* ready_ = nullptr;
  FdRecord** ready_last_ = &ready_;
};

}  // namespace tambour::libevent
