// Counts the memory that operator new has returned and that is in use, by replacing operator new.
// For programs of one thread. Include it in one source of a program: replacements are not inline.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace tambour::test {

inline std::size_t live_bytes = 0;

}  // namespace tambour::test

// In no namespace, because the language demands it.
void* operator new(std::size_t size) {
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  tambour::test::live_bytes += ::malloc_usable_size(memory) + sizeof(std::size_t);
  return memory;
}
// Sanitizers otherwise use a form of their own, whose memory std::free() must not release.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr)
    tambour::test::live_bytes -= ::malloc_usable_size(memory) + sizeof(std::size_t);
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }
