// The parts of TimingWheel that are not on the path of each timer: finding the next deadline,
// distributing slots of higher levels, and sorting.
#include "base/timing_wheel.h"

#include <algorithm>

namespace tambour::detail::base {

TimingWheel::Slot TimingWheel::first_slot() noexcept {
  return calendar_.first([this](unsigned number) { return is_empty(slots_[number]); });
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
  Head* link = head_of(slot).next_;
  std::int64_t least_ns = node_of(*link).deadline_ns_;
  if (!slot.is_sorted) {
    for (int i = 0; i < search_max && link != &head_of(slot); ++i, link = link->next_)
      least_ns = std::min(least_ns, node_of(*link).deadline_ns_);
    if (link != &head_of(slot)) {
      bound_ns_ = std::max(bound_ns_, slot.begin);
      return;
    }
  }
  bound_ns_ = least_ns;
  bound_is_exact_ = true;
}

void TimingWheel::distribute(const Slot& slot) noexcept {
  walk(head_of(slot), [this](Node& node) { insert(node); });
  close(head_of(slot));
}

bool TimingWheel::sort(const Slot& slot, Sorted& sorted) noexcept {
  // The key has room for the offset in a slot of these levels.
  if (slot.level * WheelSlots::bits + Sorted::position_bits > 64) return false;
  Head* from_end = head_of(slot).previous_;  // See walk().
  for (Head* link = head_of(slot).next_; link != &head_of(slot); link = link->next_) {
    if (sorted.count == Sorted::max) return false;
    from_end = from_end->previous_;
    __builtin_prefetch(from_end);
    Node& node = node_of(*link);
    const auto offset = static_cast<std::uint64_t>(node.deadline_ns_ - slot.begin);
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
  sorter.expire(calendar_.time,
                [this](Node& node) { node.insert_between(*past_.previous_, past_); });
}

void TimingWheel::take_all(Head& all) noexcept {
  close(all);
  append(all, past_);
  while (const Slot slot = first_slot()) append(all, head_of(slot));
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
