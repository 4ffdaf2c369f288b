// What waits to be called back, first come first served.
#pragma once

#include <tambour/operation.h>

namespace tambour {

/// An intrusive queue of Ready items. Appending cannot fail; an item leaves from anywhere by
/// unlink(). Owns nothing: what is left when it is destroyed is merely no longer queued.
class ReadyQueue {
 public:
  ReadyQueue() noexcept { close_ring(); }
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;
  ~ReadyQueue() {
    while (!empty()) head_.next_->unlink();
    head_.next_ = nullptr;  // The head is alone in its ring: nothing to unlink from.
  }

  [[nodiscard]] bool empty() const noexcept { return head_.next_ == &head_; }

  /// The item is in no queue.
  void push(Ready& item) noexcept {
    Link& link = item;
    link.next_ = &head_;
    link.previous_ = head_.previous_;
    head_.previous_->next_ = &link;
    head_.previous_ = &link;
  }

  /// Moves all of `other` behind what is here.
  void take(ReadyQueue& other) noexcept {
    if (other.empty()) return;
    Link& first = *other.head_.next_;
    Link& last = *other.head_.previous_;
    first.previous_ = head_.previous_;
    head_.previous_->next_ = &first;
    last.next_ = &head_;
    head_.previous_ = &last;
    other.close_ring();
  }

  /// Takes the first item out and runs it; it may destroy itself and anything else.
  void run_first() {
    auto& item = static_cast<Ready&>(*head_.next_);
    item.remove();
    item.run_(item);
  }

 private:
  void close_ring() noexcept { head_.next_ = head_.previous_ = &head_; }

  Link head_;
};

}  // namespace tambour
