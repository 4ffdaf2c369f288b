// The watchers whose callbacks are to be run, first come first served.
#pragma once

#include "watcher.h"

namespace tambour::perl {

/// Holds each watcher at most once, by the place that its tag names. Owns nothing: who ends takes
/// itself out. Adding cannot fail, since room was made when the watcher was.
class Due {
 public:
  Due() = default;
  Due(const Due&) = delete;
  Due& operator=(const Due&) = delete;
  ~Due() { delete[] list_; }

  /// Makes room for `watchers` in all. Throws std::bad_alloc.
  void reserve(std::size_t watchers) {
    if (watchers > room_) grow(watchers);
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept;

  void add(SV* self) noexcept {
    Tag& tag = tag_of(self);
    if (tag.place != 0) return;
    if (end_ == room_) close_up();
    list_[end_] = self;
    tag.place = static_cast<std::uint32_t>(++end_);
  }

  void remove(SV* self) noexcept {
    Tag& tag = tag_of(self);
    if (tag.place == 0) return;
    list_[tag.place - 1] = nullptr;
    tag.place = 0;
  }

  /// The first, which is not due any more; null where there is none.
  [[nodiscard]] SV* take() noexcept {
    while (first_ != end_) {
      SV* const self = list_[first_++];
      if (self == nullptr) continue;
      tag_of(self).place = 0;
      return self;
    }
    first_ = end_ = 0;
    return nullptr;
  }

  /// Puts these before all others; whichever is due already keeps its place.
  void add_first(const std::vector<SV*>& watchers);

 private:
  void grow(std::size_t watchers);
  void close_up() noexcept;

  SV** list_ = nullptr;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::size_t room_ = 0;
};

}  // namespace tambour::perl
