// The pointer of a public class to its state, whose type only the library knows.
//
// std::unique_ptr would do the same. Each type of std::unique_ptr takes GCC 12 about 13 ms in every
// source that includes its header, because of its std::tuple; this class takes 1 to 2 ms.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// Owns an object, or is null. Functions of the library make it of a std::unique_ptr.
template <class T>
class OwnedPointer {
 public:
  OwnedPointer() = default;
  OwnedPointer(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  template <class U>
    requires std::convertible_to<U*, T*>
  OwnedPointer(std::unique_ptr<U> other) noexcept  // NOLINT(google-explicit-constructor)
      : pointer_(other.release()) {}
  OwnedPointer(OwnedPointer&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  OwnedPointer& operator=(OwnedPointer&& other) noexcept {
    reset(std::exchange(other.pointer_, nullptr));
    return *this;
  }
  OwnedPointer(const OwnedPointer&) = delete;
  OwnedPointer& operator=(const OwnedPointer&) = delete;
  ~OwnedPointer() { reset(); }

  /// Deletes the object after the pointer has changed.
  void reset(T* next = nullptr) noexcept {
    static_assert(
        requires { sizeof(T); }, "the type must be complete where its objects are deleted");
    delete std::exchange(pointer_, next);
  }

  [[nodiscard]] T* get() const noexcept { return pointer_; }
  T& operator*() const noexcept { return *pointer_; }
  T* operator->() const noexcept { return pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  friend bool operator==(const OwnedPointer& pointer, std::nullptr_t) noexcept {
    return pointer.pointer_ == nullptr;
  }

 private:
  T* pointer_ = nullptr;
};

}  // namespace tambour::detail

#pragma GCC visibility pop
