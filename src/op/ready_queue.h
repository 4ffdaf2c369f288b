// What waits to be called back: by priority, and first come first served within one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tambour/operation.h>

namespace tambour {

/// A queue of Ready items for each priority. Appending cannot fail; an item leaves from anywhere by
/// unlink(). Owns nothing: what is left when it is destroyed is merely no longer queued.
class ReadyQueue {
 public:
  ReadyQueue() noexcept {
    for (Link& head : heads_) close_ring(head);
  }
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;
  ~ReadyQueue() {
    for (Link& head : heads_) {
      while (!is_alone(head)) head.next_->remove();
      head.next_ = nullptr;
    }
  }

  [[nodiscard]] bool empty() const noexcept {
    return is_alone(heads_[normal]) && (others_ == 0 || others() == 0);
  }

  /// Whether anything is queued, or was run at once in place of that: there is no reason to wait.
  [[nodiscard]] bool any_came() const noexcept { return any_ran_ || !empty(); }
  /// What was run at once until now has been seen.
  void forget_what_ran() noexcept { any_ran_ = false; }

  /// The item is in no queue.
  void push(Ready& item) noexcept {
    // Nearly everything has the same priority, whose queue is looked at without being noted.
    if (item.urgency_ == normal) [[likely]] {
      append(heads_[normal], item, item);
    } else if (item.urgency_ == Ready::at_once) {
      any_ran_ = true;
      item.run_(item);
    } else {
      append(heads_[item.urgency_], item, item);
      others_ |= 1U << item.urgency_;
    }
  }

  /// The same, and what is run at once elsewhere has to wait here too.
  void push_to_wait(Ready& item) noexcept {
    if (item.urgency_ == Ready::at_once) {
      append(heads_[normal], item, item);
    } else {
      push(item);
    }
  }

  /// Moves all of `other` behind what is here, priority by priority.
  void take(ReadyQueue& other) noexcept {
    for (unsigned left = other.all(); left != 0; left &= left - 1) {
      const auto urgency = static_cast<unsigned>(std::countr_zero(left));
      Link& head = other.heads_[urgency];
      append(heads_[urgency], *head.next_, *head.previous_);
      close_ring(head);
    }
    others_ |= other.others_;
    other.others_ = 0;
    any_ran_ |= other.any_ran_;
    other.any_ran_ = false;
  }

  /// How many items are queued; takes as many steps.
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const Link& head : heads_) {
      for (const Link* link = head.next_; link != &head; link = link->next_) ++count;
    }
    return count;
  }

  /// The priority of the first item; there is one.
  [[nodiscard]] int highest_priority() const noexcept {
    return priority_max - std::countr_zero(all());
  }

  /// Takes out and runs one after another until none is left; each may destroy itself and anything
  /// else. Where one throws, those behind it stay. `watch(item, call)` is to call call() once, and
  /// not to touch the item after that. Returns how many were run.
  template <class Watch>
  std::size_t run_all(Watch&& watch) {
    std::size_t count = 0;
    while (const unsigned left = all()) {
      // What is run here goes to another queue when it is due again, so that nothing of a higher
      // priority can come in between but through a nested call, which leaves nothing.
      const Link& head = heads_[std::countr_zero(left)];
      do {
        auto& item = static_cast<Ready&>(*head.next_);
        item.remove();
        ++count;
        watch(static_cast<const Ready&>(item), [&item] { item.run_(item); });
      } while (head.next_ != &head);
    }
    return count;
  }

  std::size_t run_all() {
    return run_all([](const Ready&, auto call) { call(); });
  }

 private:
  static void close_ring(Link& head) noexcept { head.next_ = head.previous_ = &head; }

  static bool is_alone(const Link& head) noexcept { return head.next_ == &head; }

  /// The queues with something in them, but for the normal one's. Items leave without telling, so
  /// that a bit may outlive the last of its items.
  unsigned others() const noexcept {
    for (unsigned left = others_; left != 0; left &= left - 1) {
      const auto urgency = static_cast<unsigned>(std::countr_zero(left));
      if (is_alone(heads_[urgency])) others_ &= ~(1U << urgency);
    }
    return others_;
  }

  /// The queues with something in them. Bit 0 is the highest priority.
  [[nodiscard]] unsigned all() const noexcept {
    const unsigned normal_too = is_alone(heads_[normal]) ? 0 : 1U << normal;
    return (others_ == 0 ? 0 : others()) | normal_too;
  }

  static void append(Link& head, Link& first, Link& last) noexcept {
    first.previous_ = head.previous_;
    last.next_ = &head;
    head.previous_->next_ = &first;
    head.previous_ = &last;
  }

  static constexpr std::uint8_t normal = priority_max;  ///< The urgency of priority 0.

  mutable unsigned others_ = 0;
  bool any_ran_ = false;
  std::array<Link, priority_max - priority_min + 1> heads_;
};

}  // namespace tambour
