// Makes operator new fail like the functions of failing_allocations.h: what the library allocates
// for itself. To be included in one file of a program, which must not allocate in between.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "failing_allocations.h"

void* operator new(std::size_t size) {
  if (void* const memory = failing_allocations::allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  if (failing_allocations::fails()) throw std::bad_alloc();
  const auto to = static_cast<std::size_t>(alignment);
  void* const memory = std::aligned_alloc(to, (size + to - 1) / to * to);
  if (memory == nullptr) throw std::bad_alloc();
  ++failing_allocations::live;
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return failing_allocations::allocate(size);
}
void operator delete(void* memory) noexcept { failing_allocations::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { failing_allocations::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  failing_allocations::release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  failing_allocations::release(memory);
}
