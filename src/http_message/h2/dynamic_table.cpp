// The memory of the dynamic table of HPACK.
#include "http_message/h2/dynamic_table.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tambour::http::detail::h2 {

void DynamicTable::set_size_max(std::uint32_t bytes) noexcept {
  size_max_ = std::min(bytes, size_limit);
  evict_until(size_max_);
  if (count_ > 0) return;
  // The next area has the size that the table needs then.
  text_.reset();
  text_capacity_ = 0;
  text_begin_ = text_end_;
}

void DynamicTable::evict_until(std::uint32_t size) noexcept {
  while (size_ > size) {
    const Entry& oldest = entry(count_ - 1);
    size_ -= oldest.name_size + oldest.value_size + entry_overhead;
    --count_;
  }
}

bool DynamicTable::add(std::string_view name, std::string_view value, std::uint32_t hash,
                       std::uint32_t tag) noexcept {
  const std::size_t size = name.size() + value.size() + entry_overhead;
  if (size > size_max_) {
    evict_until(0);
    return true;
  }
  const auto text_bytes = static_cast<std::uint32_t>(size) - entry_overhead;
  evict_until(size_max_ - static_cast<std::uint32_t>(size));
  if (count_ == entry_capacity_ && !grow_entries()) return false;
  // There is an area even if all texts are empty, so that text() is never null.
  const std::uint32_t left = text_capacity_ - (text_end_ - text_begin_);
  if ((!text_ || left < text_bytes) && !make_room(text_bytes)) return false;
  char* const to = text_.get() + (text_end_ - text_begin_);
  std::ranges::copy(value, std::ranges::copy(name, to).out);
  ++serial_;
  entries_[serial_ & (entry_capacity_ - 1)] = {
      .at = text_end_,
      .name_size = static_cast<std::uint32_t>(name.size()),
      .value_size = static_cast<std::uint32_t>(value.size()),
      .hash = hash,
      .tag = tag};
  text_end_ += text_bytes;
  ++count_;
  size_ += static_cast<std::uint32_t>(size);
  return true;
}

bool DynamicTable::grow_entries() noexcept {
  constexpr std::uint32_t first_capacity = 4;
  const std::uint32_t capacity = std::max(2 * entry_capacity_, first_capacity);
  std::unique_ptr<Entry[]> entries(new (std::nothrow) Entry[capacity]);
  if (!entries) return false;
  for (std::uint32_t age = 0; age < count_; ++age)
    entries[(serial_ - age) & (capacity - 1)] = entry(age);
  entries_ = std::move(entries);
  entry_capacity_ = capacity;
  return true;
}

bool DynamicTable::make_room(std::uint32_t size) noexcept {
  constexpr std::uint32_t first_capacity = 128;
  const std::uint32_t used = text_size();
  const char* const begin = text_.get() + (text_end_ - used - text_begin_);
  // A quarter of the area is free after the texts have moved, unless it is as large as allowed.
  const std::uint32_t needed = used + size;
  const std::uint32_t capacity_max = size_max_ + size_max_ / 4;
  const bool is_nearly_full = needed > text_capacity_ - text_capacity_ / 4;
  if (!text_ || (is_nearly_full && text_capacity_ < capacity_max)) {
    const std::uint32_t capacity =
        std::min(capacity_max, std::max({first_capacity, 2 * text_capacity_, needed + needed / 2}));
    std::unique_ptr<char[]> text(new (std::nothrow) char[capacity]);
    if (!text) return false;
    if (used > 0) std::memcpy(text.get(), begin, used);
    text_ = std::move(text);
    text_capacity_ = capacity;
  } else if (used > 0) {
    std::memmove(text_.get(), begin, used);
  }
  text_begin_ = text_end_ - used;
  return true;
}

}  // namespace tambour::http::detail::h2
