// The pointer of a public class to its state, whose type only the library knows.
//
// std::unique_ptr would do the same. Each type of std::unique_ptr takes GCC 12 about 13 ms in every
// source that includes its header, because of its std::tuple; this class takes 1 to 2 ms.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// Owns an object or, as OwnedPointer<T[]>, an array; or is null. Functions of the library make it
/// of a std::unique_ptr.
template <class T>
class OwnedPointer {
  using Element = std::remove_extent_t<T>;

 public:
  OwnedPointer() = default;
  OwnedPointer(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  template <class U>
    requires std::convertible_to<U*, T*>
  OwnedPointer(std::unique_ptr<U> other) noexcept  // NOLINT(google-explicit-constructor)
      : pointer_(other.release()) {}
  OwnedPointer(OwnedPointer&& other) noexcept : pointer_(other.release()) {}
  OwnedPointer& operator=(OwnedPointer&& other) noexcept {
    reset(other.release());
    return *this;
  }
  OwnedPointer(const OwnedPointer&) = delete;
  OwnedPointer& operator=(const OwnedPointer&) = delete;
  ~OwnedPointer() { reset(); }

  /// Deletes the object after the pointer has changed.
  void reset(Element* next = nullptr) noexcept {
    static_assert(
        requires { sizeof(Element); }, "the type must be complete where its objects are deleted");
    Element* const previous = pointer_;
    pointer_ = next;
    if constexpr (std::is_array_v<T>) {
      delete[] previous;
    } else {
      delete previous;
    }
  }

  [[nodiscard]] Element* get() const noexcept { return pointer_; }
  Element& operator*() const noexcept { return *pointer_; }
  Element* operator->() const noexcept { return pointer_; }
  Element& operator[](std::size_t index) const noexcept
    requires std::is_array_v<T>
  {
    return pointer_[index];
  }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  friend bool operator==(const OwnedPointer& pointer, std::nullptr_t) noexcept {
    return pointer.pointer_ == nullptr;
  }

 private:
  /// std::exchange() would be one more function to instantiate for each type.
  Element* release() noexcept {
    Element* const pointer = pointer_;
    pointer_ = nullptr;
    return pointer;
  }

  Element* pointer_ = nullptr;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
