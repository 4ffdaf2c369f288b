// A hierarchical timing wheel without ticks: exact deadlines, and constant time to arm and cancel.
//
// The wheel has a time, which expire() advances. A level holds 64 slots; a slot of level k spans
// 64^k units of time. A deadline belongs to the level of the highest group of 6 bits in which it
// differs from the wheel's time, and there to the slot that this group numbers. Slots therefore
// never overlap: all deadlines of a level come before those of the next level, and within a level
// the slots are in order. When the wheel's time enters a slot, the items of the slot move to lower
// levels. Nothing happens while the time passes through empty slots.
//
// Only the items of slots that have become due are sorted. The order of expiry is exact: by
// deadline, and for equal deadlines in the order in which they were armed. Two items with equal
// deadlines are always in the same list, and every move keeps their order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tambour/detail/wheel_node.h>

#include "base/clock.h"

namespace tambour::detail::base {

/// The arithmetic of a wheel: which slot a deadline belongs to, and which slots are in use. The
/// slots themselves are elsewhere: here those of TimingWheel, in compat/common those of the
/// drop-ins.
class WheelSlots {
 public:
  static constexpr unsigned bits = 6;
  static constexpr unsigned slots_per_level = 1U << bits;
  static constexpr unsigned levels = 11;  ///< Enough for the 63 bits of a time.
  static constexpr unsigned count = levels * slots_per_level;

  struct Place {
    unsigned level_begin;  ///< The number of the first slot of the level.
    unsigned index;        ///< In the level.
    [[nodiscard]] unsigned number() const noexcept { return level_begin + index; }
  };
  struct Slot {
    unsigned number = count;
    unsigned level = 0;
    bool is_sorted = true;
    std::int64_t begin = 0;
    std::int64_t end = 0;  ///< The last deadline of the slot.
    explicit operator bool() const noexcept { return number != count; }
  };

  /// The slot of a deadline that is not before `time`.
  [[nodiscard]] Place place_of(std::int64_t deadline) const noexcept {
    const auto differing = static_cast<std::uint64_t>(deadline ^ time);
    const Level& level = level_of_bit[static_cast<unsigned>(std::bit_width(differing | 1)) - 1];
    return {.level_begin = level.begin,
            .index = static_cast<unsigned>(deadline >> level.shift) % slots_per_level};
  }

  /// Call when the first deadline is put into a slot.
  void note_used(Place place) noexcept {
    const unsigned level = place.level_begin / slots_per_level;
    const std::uint64_t bit = std::uint64_t{1} << place.index;
    used_levels_ |= 1U << level;
    used_[level] |= bit;
    unsorted_[level] &= ~bit;
  }
  /// Call when a deadline is put into a slot behind a later one.
  void note_unsorted(Place place) noexcept {
    unsorted_[place.level_begin / slots_per_level] |= std::uint64_t{1} << place.index;
  }

  /// Returns the earliest slot in use. `is_empty(number)` tells which slots are no longer in use.
  template <class IsEmpty>
  [[nodiscard]] Slot first(IsEmpty&& is_empty) noexcept {
    while (used_levels_ != 0) {
      const auto level = static_cast<unsigned>(std::countr_zero(used_levels_));
      while (used_[level] != 0) {
        const auto index = static_cast<unsigned>(std::countr_zero(used_[level]));
        const unsigned number = level * slots_per_level + index;
        if (is_empty(number)) {
          used_[level] &= used_[level] - 1;
          continue;
        }
        const unsigned shift = level * bits;
        const std::uint64_t width = std::uint64_t{1} << shift;
        // The bits above the level are those of the wheel's time.
        const std::uint64_t above = static_cast<std::uint64_t>(time) >> shift >> bits;
        const std::uint64_t begin = (above << bits | index) << shift;
        return {.number = number,
                .level = level,
                .is_sorted = (unsorted_[level] >> index & 1) == 0,
                .begin = static_cast<std::int64_t>(begin),
                .end = static_cast<std::int64_t>(begin + (width - 1))};
      }
      used_levels_ &= used_levels_ - 1;
    }
    return {};
  }

  std::int64_t time = 0;  ///< At most every deadline in a slot.

 private:
  struct Level {
    std::uint16_t begin;  ///< The number of its first slot.
    std::uint16_t shift;
  };
  /// The level of a deadline by the highest bit in which it differs from the wheel's time. Cheaper
  /// than the division by 6.
  static constexpr std::array<Level, 64> level_of_bit = [] {
    std::array<Level, 64> of_bit{};
    for (unsigned bit = 0; bit < of_bit.size(); ++bit) {
      const unsigned level = bit / bits;
      of_bit[bit] = {.begin = static_cast<std::uint16_t>(level * slots_per_level),
                     .shift = static_cast<std::uint16_t>(level * bits)};
    }
    return of_bit;
  }();

  /// The levels and slots in use. A bit is cleared when the empty slot is next found.
  std::uint32_t used_levels_ = 0;
  std::array<std::uint64_t, levels> used_{};
  /// Slots whose deadlines are not in order.
  std::array<std::uint64_t, levels> unsorted_{};
};

/// Holds nodes by ascending deadline. Owns nothing and allocates nothing. Deadlines are not
/// negative and may be in the past; end_of_time_ns never expires.
class TimingWheel {
 public:
  using Node = detail::WheelNode;

  TimingWheel() noexcept {
    close(past_);
    for (Head& head : slots_) close(head);
  }
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;
  ~TimingWheel() {
    drain([](Node&) {});
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Sets the deadline of a node and puts it behind all nodes with the same deadline.
  void arm(Node& node, std::int64_t deadline_ns) noexcept {
    if (node.in_wheel()) {
      if (node.deadline_ns_ == bound_ns_) bound_is_exact_ = false;
      node.next_->previous_ = node.previous_;
      node.previous_->next_ = node.next_;
    } else {
      ++size_;
    }
    node.deadline_ns_ = deadline_ns;
    if (deadline_ns <= bound_ns_) {
      bound_ns_ = deadline_ns;
      bound_is_exact_ = true;
    }
    insert(node);  // Last, so that the compiler needs no stack frame.
  }

  /// The node must be in the wheel.
  void cancel(Node& node) noexcept {
    node.remove();
    --size_;
    if (node.deadline_ns_ == bound_ns_) bound_is_exact_ = false;
  }

  /// The earliest deadline, or end_of_time_ns if there is none. Exact, unless more than
  /// `search_max` nodes share the earliest slot, were not armed in the order of their deadlines,
  /// and the earliest of them was cancelled: then a lower bound.
  [[nodiscard]] std::int64_t next_ns() noexcept {
    if (!bound_is_exact_) find_next();
    return bound_ns_;
  }
  static constexpr int search_max = 32;

  /// False if expire() would only advance the wheel's time by little, which it may do later: a loop
  /// with many iterations rarely has a timer to expire.
  [[nodiscard]] bool is_expiry_due(std::int64_t now_ns) const noexcept {
    constexpr std::int64_t lag_max_ns = 1'000'000;
    return bound_ns_ <= now_ns || now_ns - calendar_.time >= lag_max_ns;
  }

  /// Removes the nodes whose deadline is at most `now_ns` and calls f(node) for each, in order. `f`
  /// may arm nodes with deadlines after `now_ns`. `now_ns` must not decrease.
  template <class F>
  void expire(std::int64_t now_ns, F&& f) noexcept {
    if (now_ns == end_of_time_ns) --now_ns;
    if (!is_empty(past_)) expire_past(f);
    while (const Slot slot = first_slot()) {
      if (slot.begin > now_ns) break;
      if (slot.end <= now_ns && take_in_order(slot, f)) continue;
      calendar_.time = slot.begin;
      distribute(slot);
    }
    if (calendar_.time < now_ns) calendar_.time = now_ns;
    if (bound_ns_ > now_ns) return;
    bound_ns_ = now_ns + 1;
    bound_is_exact_ = false;
  }

  /// Adds the same amount, which must not be negative, to all deadlines.
  void shift(std::int64_t by_ns) noexcept;

  /// Removes all nodes and calls f(node) for each.
  template <class F>
  void drain(F&& f) noexcept {
    Head all;
    take_all(all);
    take(all, f);
    size_ = 0;
    bound_ns_ = end_of_time_ns;
    bound_is_exact_ = true;
  }

 private:
  using Head = detail::ListHook<Node>;
  using Slot = WheelSlots::Slot;

  static void close(Head& head) noexcept { head.next_ = head.previous_ = &head; }
  static bool is_empty(const Head& head) noexcept { return head.next_ == &head; }
  static Node& node_of(Head& head) noexcept { return static_cast<Node&>(head); }

  void insert(Node& node) noexcept {
    const std::int64_t deadline_ns = node.deadline_ns_;
    if (deadline_ns < calendar_.time) [[unlikely]]
      return insert_past(node);
    const WheelSlots::Place place = calendar_.place_of(deadline_ns);
    Head& head = slots_[place.number()];
    Head& last = *head.previous_;
    if (&last == &head) {
      calendar_.note_used(place);
    } else if (node_of(last).deadline_ns_ > deadline_ns) {
      calendar_.note_unsorted(place);
    }
    node.insert_between(last, head);
  }

  void insert_past(Node& node) noexcept;
  /// Returns the earliest slot that is not empty.
  [[nodiscard]] Slot first_slot() noexcept;
  [[nodiscard]] Head& head_of(const Slot& slot) noexcept { return slots_[slot.number]; }
  void find_next() noexcept;
  void distribute(const Slot& slot) noexcept;
  void sort_past() noexcept;
  void take_all(Head& all) noexcept;
  /// Moves the nodes of `from` to the end of `to`.
  static void append(Head& to, Head& from) noexcept;

  /// Calls f(node) for each node of a list; `f` may change the links of the node. Each step waits
  /// for the memory of a node. A second walk, from the end, makes two steps at a time possible.
  template <class F>
  static void walk(Head& list, F&& f) noexcept {
    Head* next = list.next_;
    Head* from_end = list.previous_;
    bool have_met = false;
    while (next != &list) {
      Node& node = node_of(*next);
      next = node.next_;
      have_met = have_met || &node == from_end || next == from_end;
      if (!have_met) {
        from_end = from_end->previous_;
        __builtin_prefetch(from_end);
      }
      f(node);
    }
  }

  /// Unlinks the nodes of a list and calls f(node) for each.
  template <class F>
  static void take(Head& list, F&& f) noexcept {
    walk(list, [&](Node& node) {
      node.next_ = nullptr;
      f(node);
    });
    close(list);
  }

  template <class F>
  void expire_past(F&& f) noexcept {
    if (!past_is_sorted_) sort_past();
    take(past_, [&](Node& node) {
      --size_;
      f(node);
    });
  }

  /// The nodes of one slot in order.
  struct Sorted {
    static constexpr unsigned position_bits = 6;
    static constexpr unsigned max = 1U << position_bits;
    std::array<Node*, max> nodes;
    /// The offset in the slot, followed by the position in the list, which makes the order stable.
    std::array<std::uint64_t, max> keys;
    unsigned count = 0;

    [[nodiscard]] Node* at(unsigned i) const noexcept { return nodes[keys[i] % max]; }
  };
  /// Returns false, without any effect, if the nodes are too many.
  bool sort(const Slot& slot, Sorted& sorted) noexcept;

  /// Removes the nodes of a slot that is due and calls f(node) for each, in order. Returns false,
  /// without any effect, if they are too many to be sorted at once.
  template <class F>
  bool take_in_order(const Slot& slot, F&& f) noexcept {
    if (slot.is_sorted) {
      take(head_of(slot), [&](Node& node) {
        --size_;
        f(node);
      });
      return true;
    }
    Sorted sorted;
    if (!sort(slot, sorted)) return false;
    close(head_of(slot));
    size_ -= sorted.count;
    for (unsigned i = 0; i < sorted.count; ++i) {
      constexpr unsigned ahead = 8;
      if (i + ahead < sorted.count) __builtin_prefetch(sorted.at(i + ahead));
      Node& node = *sorted.at(i);
      node.next_ = nullptr;
      f(node);
    }
    return true;
  }

  WheelSlots calendar_;  ///< Its time is at most every deadline, except those in `past_`.
  std::int64_t bound_ns_ = end_of_time_ns;  ///< At most every deadline.
  bool bound_is_exact_ = true;
  bool past_is_sorted_ = true;
  std::size_t size_ = 0;
  Head past_;  ///< Nodes that were armed with a deadline before the wheel's time.
  std::array<Head, WheelSlots::count> slots_;
};

}  // namespace tambour::detail::base
