// The queue of watchers whose callbacks are due, in FIFO order.
#pragma once

#include "watcher.h"

namespace tambour::perl {

/// Contains each watcher at most once; the watcher's tag stores its index. Owns nothing: a watcher
/// removes itself when it is destroyed. Adding cannot fail, because capacity is reserved when a
/// watcher is created.
class Due {
 public:
  Due() = default;
  Due(const Due&) = delete;
  Due& operator=(const Due&) = delete;
  ~Due() { delete[] list_; }

  /// Reserves capacity for `watchers` in total. Throws std::bad_alloc.
  void reserve(std::size_t watchers) {
    if (watchers > capacity_) grow(watchers);
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept;

  void add(SV* self) noexcept {
    Tag& tag = tag_of(self);
    if (tag.due_index != 0) return;
    if (end_ == capacity_) compact();
    list_[end_] = self;
    tag.due_index = static_cast<std::uint32_t>(++end_);
  }

  void remove(SV* self) noexcept {
    Tag& tag = tag_of(self);
    if (tag.due_index == 0) return;
    list_[tag.due_index - 1] = nullptr;
    tag.due_index = 0;
  }

  /// Removes and returns the first watcher; null if the queue is empty.
  [[nodiscard]] SV* take() noexcept {
    while (first_ != end_) {
      SV* const self = list_[first_++];
      if (self == nullptr) continue;
      tag_of(self).due_index = 0;
      return self;
    }
    first_ = end_ = 0;
    return nullptr;
  }

  /// Inserts the watchers at the front; those that are already due keep their position.
  void add_first(const std::vector<SV*>& watchers);

 private:
  void grow(std::size_t watchers);
  void compact() noexcept;

  SV** list_ = nullptr;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace tambour::perl
