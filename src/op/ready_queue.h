// What waits to be called back: by priority, and first come first served within one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

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
    while (!empty()) first().remove();
    for (Link& head : heads_) head.next_ = nullptr;  // Each is alone in its ring.
  }

  [[nodiscard]] bool empty() const noexcept {
    // Items leave without telling, so that a bit may outlive the last of its items.
    while (perhaps_ != 0) {
      const Link& head = heads_[highest()];
      if (head.next_ != &head) return false;
      perhaps_ &= perhaps_ - 1;
    }
    return true;
  }

  /// The item is in no queue.
  void push(Ready& item) noexcept {
    append(item.urgency_, item, item);
    perhaps_ |= 1U << item.urgency_;
  }

  /// Moves all of `other` behind what is here, priority by priority.
  void take(ReadyQueue& other) noexcept {
    while (!other.empty()) {
      const unsigned urgency = other.highest();
      Link& head = other.heads_[urgency];
      append(urgency, *head.next_, *head.previous_);
      close_ring(head);
      perhaps_ |= 1U << urgency;
    }
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
    return priority_max - static_cast<int>(highest());
  }

  /// Takes out and runs one after another until none is left; each may destroy itself and anything
  /// else. Where one throws, those behind it stay. `watch(item, call)` is to call call() once, and
  /// not to touch the item after that. Returns how many were run.
  template <class Watch>
  std::size_t run_all(Watch&& watch) {
    std::size_t count = 0;
    while (!empty()) {
      // What is run here goes to another queue when it is due again, so that nothing of a higher
      // priority can come in between but through a nested call, which leaves nothing.
      const Link& head = heads_[highest()];
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

  /// Bit 0 is the highest priority, which makes finding it one instruction.
  [[nodiscard]] unsigned highest() const noexcept {
    return static_cast<unsigned>(std::countr_zero(perhaps_));
  }
  [[nodiscard]] Ready& first() noexcept { return static_cast<Ready&>(*heads_[highest()].next_); }

  void append(unsigned urgency, Link& first, Link& last) noexcept {
    Link& head = heads_[urgency];
    first.previous_ = head.previous_;
    last.next_ = &head;
    head.previous_->next_ = &first;
    head.previous_ = &last;
  }

  mutable unsigned perhaps_ = 0;
  std::array<Link, priority_max - priority_min + 1> heads_;
};

}  // namespace tambour
