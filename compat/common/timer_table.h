// The timers of a drop-in's loop: a timing wheel whose nodes are beside the timers.
//
// A timer is a structure in the program's memory whose layout has no room for the links of the
// wheel, but an integer that the library may use: the position of the timer's node in this table.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include <tambour/detail/wheel_node.h>

#include "base/timing_wheel.h"

namespace tambour::compat {

/// Timers in the order of their deadlines, then in the order in which they were armed.
/// Deadlines are integers of any unit; negative ones count as 0. Owns the nodes, not the timers.
///
///   struct Traits {
///     static void* allocate(std::size_t bytes) noexcept;  null if there is no memory
///     static void free(void* memory) noexcept;
///     static int position(const Timer& timer) noexcept;
///     static void set_position(Timer& timer, int position) noexcept;
///   };
template <class Timer, class Traits>
class TimerTable {
 public:
  TimerTable() = default;
  TimerTable(const TimerTable&) = delete;
  TimerTable& operator=(const TimerTable&) = delete;
  ~TimerTable() {
    wheel_.drain([](Node&) {});
    for (Entry* const chunk : chunks_) {
      if (chunk != nullptr) Traits::free(chunk);
    }
  }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Reserves space for one more timer. Returns false if there is no memory.
  [[nodiscard]] bool reserve() noexcept { return first_free_ != 0 || unused_ != limit_ || grow(); }

  /// Adds a timer and sets its position, which is positive. The space must have been reserved.
  void add(Timer& timer, std::int64_t deadline) noexcept {
    unsigned position = first_free_;
    Entry* entry;
    if (position != 0) {
      entry = &at(position);
      first_free_ = entry->next_free;
    } else {
      position = end_++;
      entry = ::new (unused_++) Entry;
    }
    ++size_;
    entry->timer = &timer;
    Traits::set_position(timer, static_cast<int>(position));
    wheel_.arm(*entry, std::max<std::int64_t>(deadline, 0));
  }

  /// Changes the deadline of a timer of the table, and puts it behind those with the same deadline.
  void move(Timer& timer, std::int64_t deadline) noexcept {
    wheel_.arm(entry_of(timer), std::max<std::int64_t>(deadline, 0));
  }

  /// Removes a timer, and sets its position to 0. Leaves space for one timer.
  void remove(Timer& timer) noexcept {
    Entry& entry = entry_of(timer);
    if (entry.in_wheel()) wheel_.cancel(entry);
    entry.next_free = first_free_;
    first_free_ = static_cast<unsigned>(Traits::position(timer));
    Traits::set_position(timer, 0);
    if (--size_ != 0) return;
    // Timers that are added in a row are then adjacent in memory again. grow() returns the first
    // chunk, which exists, so there is space for one timer, as after any remove().
    first_free_ = 0;
    end_ = first_position;
    static_cast<void>(grow());
  }

  /// The earliest deadline, or a lower bound: see base::TimingWheel::next_ns().
  [[nodiscard]] std::int64_t next() noexcept { return wheel_.next_ns(); }
  [[nodiscard]] std::int64_t deadline(const Timer& timer) noexcept {
    return entry_of(timer).deadline_ns();
  }

  /// Calls f(timer) for each timer whose deadline is at most `now`, in order. `f` must either
  /// remove() the timer, or move() it to a deadline after `now`, and must not change others.
  template <class F>
  void expire(std::int64_t now, F&& f) noexcept {
    wheel_.expire(now, [&](Node& node) { f(*static_cast<Entry&>(node).timer); });
  }

  /// Calls f(timer) for each timer, in no order. `f` may remove and move timers.
  template <class F>
  void for_each(F&& f) {
    for (unsigned position = first_position; position < end_; ++position) {
      if (at(position).in_wheel()) f(*at(position).timer);
    }
  }

  /// Returns whether the position of a timer refers to that timer.
  [[nodiscard]] bool contains(const Timer& timer) noexcept {
    const auto position = static_cast<unsigned>(Traits::position(timer));
    return position >= first_position && position < end_ && at(position).in_wheel() &&
           at(position).timer == &timer;
  }

 private:
  using Node = detail::WheelNode;
  struct Entry : Node {
    union {
      Timer* timer = nullptr;
      unsigned next_free;  ///< While the entry is unused.
    };
  };

  // The nodes must not move, so the table grows by chunks, each twice as large as the one before.
  // Chunk k holds the positions whose highest bit is bit k.
  static constexpr unsigned first_position = 64;
  [[gnu::noinline]] bool grow() noexcept {
    const unsigned chunk = chunk_of(end_);
    const std::size_t count = std::size_t{1} << chunk;
    if (chunks_[chunk] == nullptr)
      chunks_[chunk] = static_cast<Entry*>(Traits::allocate(count * sizeof(Entry)));
    unused_ = chunks_[chunk];
    limit_ = unused_ == nullptr ? nullptr : unused_ + count;
    return unused_ != nullptr;
  }
  static unsigned chunk_of(unsigned position) noexcept {
    return static_cast<unsigned>(std::bit_width(position)) - 1;
  }
  [[nodiscard]] Entry& at(unsigned position) noexcept {
    const unsigned chunk = chunk_of(position);
    return chunks_[chunk][position ^ 1U << chunk];
  }
  [[nodiscard]] Entry& entry_of(const Timer& timer) noexcept {
    return at(static_cast<unsigned>(Traits::position(timer)));
  }

  Entry* unused_ = nullptr;        ///< The entry of `end_`; null before its chunk is allocated.
  Entry* limit_ = nullptr;         ///< The end of that chunk.
  unsigned end_ = first_position;  ///< The first position that was never used.
  unsigned first_free_ = 0;        ///< The position that was freed last; 0: none.
  std::size_t size_ = 0;
  std::array<Entry*, 32> chunks_{};
  detail::base::TimingWheel wheel_;
};

}  // namespace tambour::compat
