// A hierarchical timing wheel without ticks: exact deadlines, and constant time to arm and cancel.
//
// The wheel has a time, which expire() advances. A level holds 64 slots; a slot of level k spans
// 64^k nanoseconds. A deadline belongs to the level of the highest group of 6 bits in which it
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
#include <utility>

#include <tambour/detail/wheel_node.h>

#include "base/clock.h"

namespace tambour::detail::base {

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
    return bound_ns_ <= now_ns || now_ns - time_ns_ >= lag_max_ns;
  }

  /// Removes the nodes whose deadline is at most `now_ns` and calls f(node) for each, in order. `f`
  /// may arm nodes with deadlines after `now_ns`. `now_ns` must not decrease.
  template <class F>
  void expire(std::int64_t now_ns, F&& f) noexcept {
    if (now_ns == end_of_time_ns) --now_ns;
    if (!is_empty(past_)) expire_past(f);
    while (const Slot slot = first_slot()) {
      if (slot.begin_ns > now_ns) break;
      if (slot.end_ns <= now_ns && take_in_order(slot, f)) continue;
      time_ns_ = slot.begin_ns;
      distribute(slot);
    }
    if (time_ns_ < now_ns) time_ns_ = now_ns;
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
  static constexpr unsigned bits = 6;
  static constexpr unsigned slots_per_level = 1U << bits;
  static constexpr unsigned levels = 11;  ///< Enough for the 63 bits of a time.

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

  struct Slot {
    Head* head = nullptr;
    unsigned level = 0;
    bool is_sorted = true;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;  ///< The last deadline of the slot.
    explicit operator bool() const noexcept { return head != nullptr; }
  };

  static void close(Head& head) noexcept { head.next_ = head.previous_ = &head; }
  static bool is_empty(const Head& head) noexcept { return head.next_ == &head; }
  static Node& node_of(Head& head) noexcept { return static_cast<Node&>(head); }

  void insert(Node& node) noexcept {
    const std::int64_t deadline_ns = node.deadline_ns_;
    if (deadline_ns < time_ns_) [[unlikely]]
      return insert_past(node);
    const auto differing = static_cast<std::uint64_t>(deadline_ns ^ time_ns_);
    const Level& level = level_of_bit[static_cast<unsigned>(std::bit_width(differing | 1)) - 1];
    const auto index = static_cast<unsigned>(deadline_ns >> level.shift) % slots_per_level;
    Head& head = slots_[level.begin + index];
    Head& last = *head.previous_;
    if (&last == &head) {
      note_used(level.begin / slots_per_level, index);
    } else if (node_of(last).deadline_ns_ > deadline_ns) {
      unsorted_[level.begin / slots_per_level] |= std::uint64_t{1} << index;
    }
    node.insert_between(last, head);
  }

  void insert_past(Node& node) noexcept;
  void note_used(unsigned level, unsigned index) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << index;
    used_levels_ |= 1U << level;
    used_[level] |= bit;
    unsorted_[level] &= ~bit;
  }

  /// Removes and returns the earliest slot that is not empty.
  [[nodiscard]] Slot first_slot() noexcept;
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
  static bool sort(const Slot& slot, Sorted& sorted) noexcept;

  /// Removes the nodes of a slot that is due and calls f(node) for each, in order. Returns false,
  /// without any effect, if they are too many to be sorted at once.
  template <class F>
  bool take_in_order(const Slot& slot, F&& f) noexcept {
    if (slot.is_sorted) {
      take(*slot.head, [&](Node& node) {
        --size_;
        f(node);
      });
      return true;
    }
    Sorted sorted;
    if (!sort(slot, sorted)) return false;
    close(*slot.head);
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

  std::int64_t time_ns_ = 0;                ///< At most every deadline, except those in `past_`.
  std::int64_t bound_ns_ = end_of_time_ns;  ///< At most every deadline.
  bool bound_is_exact_ = true;
  bool past_is_sorted_ = true;
  /// The levels and slots that are not empty. A bit is cleared when the empty slot is next found.
  std::uint32_t used_levels_ = 0;
  std::size_t size_ = 0;
  std::array<std::uint64_t, levels> used_{};
  /// Slots whose nodes are not in the order of their deadlines.
  std::array<std::uint64_t, levels> unsorted_{};
  Head past_;  ///< Nodes that were armed with a deadline before the wheel's time.
  std::array<Head, std::size_t{levels} * slots_per_level> slots_;
};

}  // namespace tambour::detail::base
