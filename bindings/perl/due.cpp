#include "due.h"

namespace tambour::perl {

std::size_t Due::size() const noexcept {
  std::size_t count = 0;
  for (std::size_t i = first_; i < end_; ++i) count += list_[i] != nullptr;
  return count;
}

void Due::grow(std::size_t watchers) {
  const std::size_t room = std::max({watchers, room_ * 2, std::size_t{64}});
  auto** const list = new SV*[room];
  std::copy_n(list_, end_, list);
  delete[] std::exchange(list_, list);
  room_ = room;
}

void Due::close_up() noexcept {
  std::size_t end = 0;
  for (std::size_t i = first_; i < end_; ++i) {
    if (list_[i] == nullptr) continue;
    list_[end++] = list_[i];
    tag_of(list_[i]).place = static_cast<std::uint32_t>(end);
  }
  first_ = 0;
  end_ = end;
}

void Due::add_first(const std::vector<SV*>& watchers) {
  // What is due is at most all that exists, for which there is room.
  close_up();
  const auto is_new = [](SV* self) { return tag_of(self).place == 0; };
  const auto added = static_cast<std::size_t>(std::ranges::count_if(watchers, is_new));
  std::copy_backward(list_, list_ + end_, list_ + end_ + added);
  end_ += added;
  std::size_t place = 0;
  for (SV* self : watchers) {
    if (is_new(self)) list_[place++] = self;
  }
  for (std::size_t i = 0; i < end_; ++i) tag_of(list_[i]).place = static_cast<std::uint32_t>(i + 1);
}

}  // namespace tambour::perl
