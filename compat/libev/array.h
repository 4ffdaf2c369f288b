// Memory from the allocator of ev_set_allocator(3), and arrays of trivially copyable values in it.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tambour::libev {

/// The function set by ev_set_allocator(): works like realloc(3), and like free(3) if the size is
/// 0.
using Allocator = void* (*)(void*, long) noexcept;
void set_allocator(Allocator allocator) noexcept;

/// Returns null only if the size is 0. If there is no memory, the process aborts with a message,
/// like libev, because this interface cannot report the error.
void* reallocate(void* memory, std::size_t bytes) noexcept;

/// An array that grows by doubling and does not initialise new elements. Owns its memory. The owner
/// maintains `count`, the number of elements in use; it is here because it fits beside the
/// capacity.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { reallocate(static_cast<void*>(data_), 0); }

  [[nodiscard]] bool full() const noexcept { return count == capacity_; }
  T& operator[](int index) noexcept { return data_[index]; }
  const T& operator[](int index) const noexcept { return data_[index]; }

  /// Reserves space for `items` elements in total.
  void need(int items) noexcept {
    if (items > capacity_) [[unlikely]]
      grow(items);
  }

  int count = 0;

 private:
  void grow(int items) noexcept {
    constexpr int least = 8;
    int wanted = capacity_ == 0 ? least : capacity_ * 2;
    if (wanted < items) wanted = items;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer type.
    const std::size_t bytes = static_cast<std::size_t>(wanted) * sizeof(T);
    data_ = static_cast<T*>(reallocate(static_cast<void*>(data_), bytes));
    capacity_ = wanted;
  }

  int capacity_ = 0;
  T* data_ = nullptr;
};

}  // namespace tambour::libev
