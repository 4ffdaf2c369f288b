// Memory as ev_set_allocator(3) gives it, and arrays of plain values in it.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tambour::libev {

/// What ev_set_allocator() set: works like realloc(3), and with a size of zero like free(3).
using Allocator = void* (*)(void*, long) noexcept;
void set_allocator(Allocator allocator) noexcept;

/// Never null for a size other than zero: where there is no memory, the process ends with a
/// sentence, as libev's does. There is no way to report it through this interface.
void* reallocate(void* memory, std::size_t bytes) noexcept;

/// Grows by doubling; what is new is not initialised. Owns its memory. How much of it is in use is
/// for its owner to say, in `count`, which fits beside the capacity.
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

  /// Makes room for so many in all.
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
    // NOLINTNEXTLINE(bugprone-sizeof-expression): items are pointers at times.
    const std::size_t bytes = static_cast<std::size_t>(wanted) * sizeof(T);
    data_ = static_cast<T*>(reallocate(static_cast<void*>(data_), bytes));
    capacity_ = wanted;
  }

  int capacity_ = 0;
  T* data_ = nullptr;
};

}  // namespace tambour::libev
