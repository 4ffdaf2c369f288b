// Due: grows the queue of due callbacks, and closes its gaps.
#include "due.h"

namespace tambour::perl {

std::size_t Due::size() const noexcept {
  std::size_t count = 0;
  for (std::size_t i = first_; i < end_; ++i) count += list_[i] != nullptr;
  return count;
}

void Due::grow(std::size_t watchers) {
  const std::size_t capacity = std::max({watchers, capacity_ * 2, std::size_t{64}});
  auto** const list = new SV*[capacity];
  std::copy_n(list_, end_, list);
  delete[] std::exchange(list_, list);
  capacity_ = capacity;
}

void Due::compact() noexcept {
  std::size_t end = 0;
  for (std::size_t i = first_; i < end_; ++i) {
    if (list_[i] == nullptr) continue;
    list_[end++] = list_[i];
    tag_of(list_[i]).due_index = static_cast<std::uint32_t>(end);
  }
  first_ = 0;
  end_ = end;
}

void Due::add_first(const std::vector<SV*>& watchers) {
  // Capacity suffices: no more watchers can be due than exist.
  compact();
  const auto is_new = [](SV* self) { return tag_of(self).due_index == 0; };
  const auto added = static_cast<std::size_t>(std::ranges::count_if(watchers, is_new));
  std::copy_backward(list_, list_ + end_, list_ + end_ + added);
  end_ += added;
  std::size_t index = 0;
  for (SV* self : watchers) {
    if (is_new(self)) list_[index++] = self;
  }
  for (std::size_t i = 0; i < end_; ++i)
    tag_of(list_[i]).due_index = static_cast<std::uint32_t>(i + 1);
}

}  // namespace tambour::perl
