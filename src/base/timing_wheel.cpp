// The parts of TimingWheel that are not on the path of each timer: finding the next deadline,
// distributing slots of higher levels, and sorting.
#include "base/timing_wheel.h"

#include <algorithm>

namespace tambour::detail::base {

TimingWheel::Slot TimingWheel::first_slot() noexcept {
  while (used_levels_ != 0) {
    const auto level = static_cast<unsigned>(std::countr_zero(used_levels_));
    while (used_[level] != 0) {
      const auto index = static_cast<unsigned>(std::countr_zero(used_[level]));
      Head& head = slots_[level * slots_per_level + index];
      if (is_empty(head)) {
        used_[level] &= used_[level] - 1;
        continue;
      }
      const unsigned shift = level * bits;
      const std::uint64_t width = std::uint64_t{1} << shift;
      // The bits above the level are those of the wheel's time.
      const std::uint64_t above = static_cast<std::uint64_t>(time_ns_) >> shift >> bits;
      const std::uint64_t begin = (above << bits | index) << shift;
      return {.head = &head,
              .level = level,
              .is_sorted = (unsorted_[level] >> index & 1) == 0,
              .begin_ns = static_cast<std::int64_t>(begin),
              .end_ns = static_cast<std::int64_t>(begin + (width - 1))};
    }
    used_levels_ &= used_levels_ - 1;
  }
  return {};
}

void TimingWheel::insert_past(Node& node) noexcept {
  if (is_empty(past_)) {
    past_is_sorted_ = true;
  } else if (node_of(*past_.previous_).deadline_ns_ > node.deadline_ns_) {
    past_is_sorted_ = false;
  }
  node.insert_between(*past_.previous_, past_);
}

void TimingWheel::find_next() noexcept {
  if (!is_empty(past_)) return;  // Any bound of them is due.
  const Slot slot = first_slot();
  if (!slot) {
    bound_ns_ = end_of_time_ns;
    bound_is_exact_ = true;
    return;
  }
  Head* link = slot.head->next_;
  std::int64_t least_ns = node_of(*link).deadline_ns_;
  if (!slot.is_sorted) {
    for (int i = 0; i < search_max && link != slot.head; ++i, link = link->next_)
      least_ns = std::min(least_ns, node_of(*link).deadline_ns_);
    if (link != slot.head) {
      bound_ns_ = std::max(bound_ns_, slot.begin_ns);
      return;
    }
  }
  bound_ns_ = least_ns;
  bound_is_exact_ = true;
}

void TimingWheel::distribute(const Slot& slot) noexcept {
  walk(*slot.head, [this](Node& node) { insert(node); });
  close(*slot.head);
}

bool TimingWheel::sort(const Slot& slot, Sorted& sorted) noexcept {
  // The key has room for the offset in a slot of these levels.
  if (slot.level * bits + Sorted::position_bits > 64) return false;
  Head* from_end = slot.head->previous_;  // See walk().
  for (Head* link = slot.head->next_; link != slot.head; link = link->next_) {
    if (sorted.count == Sorted::max) return false;
    from_end = from_end->previous_;
    __builtin_prefetch(from_end);
    Node& node = node_of(*link);
    const auto offset = static_cast<std::uint64_t>(node.deadline_ns_ - slot.begin_ns);
    sorted.keys[sorted.count] = offset << Sorted::position_bits | sorted.count;
    sorted.nodes[sorted.count++] = &node;
  }
  std::sort(sorted.keys.begin(), sorted.keys.begin() + sorted.count);
  return true;
}

void TimingWheel::append(Head& to, Head& from) noexcept {
  if (is_empty(from)) return;
  from.next_->previous_ = to.previous_;
  from.previous_->next_ = &to;
  to.previous_->next_ = from.next_;
  to.previous_ = from.previous_;
  close(from);
}

void TimingWheel::sort_past() noexcept {
  // A second wheel, whose time is before these deadlines, sorts without allocating.
  TimingWheel sorter;
  take(past_, [&](Node& node) { sorter.insert(node); });
  sorter.expire(time_ns_, [this](Node& node) { node.insert_between(*past_.previous_, past_); });
}

void TimingWheel::take_all(Head& all) noexcept {
  close(all);
  append(all, past_);
  while (const Slot slot = first_slot()) append(all, *slot.head);
}

void TimingWheel::shift(std::int64_t by_ns) noexcept {
  Head all;
  take_all(all);
  take(all, [&](Node& node) {
    node.deadline_ns_ = saturating_add(node.deadline_ns_, by_ns);
    insert(node);
  });
  bound_ns_ = saturating_add(bound_ns_, by_ns);
}

}  // namespace tambour::detail::base
