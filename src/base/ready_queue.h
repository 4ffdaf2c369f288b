// The queue of callbacks to invoke: ordered by priority, first in, first out within a priority.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tambour/detail/ready_node.h>

namespace tambour::detail::base {

/// A queue of items per priority. Appending cannot fail; unlink() removes an item from any
/// position. Owns nothing: the destructor only unlinks the remaining items.
class ReadyQueue {
 public:
  ReadyQueue() noexcept {
    for (Hook& head : heads_) close_ring(head);
  }
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;
  ~ReadyQueue() {
    for (Hook& head : heads_) {
      while (!is_alone(head)) head.next_->remove();
      head.next_ = nullptr;
    }
  }

  [[nodiscard]] bool empty() const noexcept {
    return is_alone(heads_[normal]) && (others_ == 0 || others() == 0);
  }

  /// Returns whether anything is queued or was run immediately, so that the loop must not wait.
  [[nodiscard]] bool any_came() const noexcept { return any_ran_ || !empty(); }
  /// Clears the flag that an item was run immediately.
  void reset_any_ran() noexcept { any_ran_ = false; }

  /// The item must not be in a queue.
  void push(detail::ReadyNode& item) noexcept {
    // Nearly all items have this priority; its queue is checked without a bit in `others_`.
    if (item.urgency_ == normal) [[likely]] {
      append(heads_[normal], item, item);
    } else if (item.urgency_ == detail::ReadyNode::at_once) {
      any_ran_ = true;
      item.run_(item);
    } else {
      append(heads_[item.urgency_], item, item);
      others_ |= 1U << item.urgency_;
    }
  }

  /// Like push(), but also queues items that push() would run immediately.
  void push_to_wait(detail::ReadyNode& item) noexcept {
    if (item.urgency_ == detail::ReadyNode::at_once) {
      append(heads_[normal], item, item);
    } else {
      push(item);
    }
  }

  /// Appends all items of `other`, per priority.
  void take(ReadyQueue& other) noexcept {
    for (unsigned left = other.all(); left != 0; left &= left - 1) {
      const auto urgency = static_cast<unsigned>(std::countr_zero(left));
      Hook& head = other.heads_[urgency];
      append(heads_[urgency], *head.next_, *head.previous_);
      close_ring(head);
    }
    others_ |= other.others_;
    other.others_ = 0;
    any_ran_ |= other.any_ran_;
    other.any_ran_ = false;
  }

  /// The number of queued items. Linear time.
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t count = 0;
    if (empty()) return count;
    for (const Hook& head : heads_) {
      for (const Hook* link = head.next_; link != &head; link = link->next_) ++count;
    }
    return count;
  }

  /// The priority of the first item. The queue must not be empty.
  [[nodiscard]] int highest_priority() const noexcept {
    return priority_max - std::countr_zero(all());
  }

  /// Removes and runs items until the queue is empty; each may destroy itself and any other item.
  /// If one throws, the remaining items stay queued. `watch(item, call)` must call call() once and
  /// not access the item afterwards. Returns the number of items run.
  template <class Watch>
  std::size_t run_all(Watch&& watch) {
    std::size_t count = 0;
    while (const unsigned left = all()) {
      // An item that becomes ready here goes to another queue, so no item of a higher priority can
      // be added during the inner loop, except by a nested run_all(), which empties the queue or
      // throws.
      const Hook& head = heads_[std::countr_zero(left)];
      has_thrown_ = false;
      do {
        auto& item = static_cast<detail::ReadyNode&>(*head.next_);
        item.remove();
        ++count;
        try {
          watch(static_cast<const detail::ReadyNode&>(item), [&item] { item.run_(item); });
        } catch (...) {
          has_thrown_ = true;
          throw;
        }
      } while (head.next_ != &head && !has_thrown_);
    }
    return count;
  }

  std::size_t run_all() {
    return run_all([](const detail::ReadyNode&, auto call) { call(); });
  }

 private:
  using Hook = detail::ReadyNode::Hook;

  static void close_ring(Hook& head) noexcept { head.next_ = head.previous_ = &head; }

  static bool is_alone(const Hook& head) noexcept { return head.next_ == &head; }

  /// The non-empty queues except that of the normal priority. An item does not clear its bit when
  /// it is removed, so a set bit may belong to an empty queue.
  unsigned others() const noexcept {
    for (unsigned left = others_; left != 0; left &= left - 1) {
      const auto urgency = static_cast<unsigned>(std::countr_zero(left));
      if (is_alone(heads_[urgency])) others_ &= ~(1U << urgency);
    }
    return others_;
  }

  /// The non-empty queues. Bit 0 is the highest priority.
  [[nodiscard]] unsigned all() const noexcept {
    const unsigned normal_too = is_alone(heads_[normal]) ? 0 : 1U << normal;
    return (others_ == 0 ? 0 : others()) | normal_too;
  }

  static void append(Hook& head, Hook& first, Hook& last) noexcept {
    first.previous_ = head.previous_;
    last.next_ = &head;
    head.previous_->next_ = &first;
    head.previous_ = &last;
  }

  static constexpr std::uint8_t normal = priority_max;  ///< The urgency of priority 0.

  mutable unsigned others_ = 0;
  bool any_ran_ = false;
  bool has_thrown_ = false;  ///< A run_all() since the beginning of the current one has thrown.
  std::array<Hook, priority_max - priority_min + 1> heads_;
};

}  // namespace tambour::detail::base
