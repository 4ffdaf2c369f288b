// Functions for event_set_mem_functions() that make one allocation fail, and count what is not
// freed.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace failing_allocations {

inline int countdown = -1;  // The allocations that succeed before the one that fails, or -1.
inline int live = 0;

inline bool fails() {
  if (countdown < 0) return false;
  return countdown-- == 0;
}

inline void* allocate(std::size_t size) {
  if (fails()) return nullptr;
  void* const memory = std::malloc(size);
  live += memory != nullptr ? 1 : 0;
  return memory;
}

inline void* reallocate(void* memory, std::size_t size) {
  if (fails()) return nullptr;
  void* const larger = std::realloc(memory, size);
  live += memory == nullptr && larger != nullptr ? 1 : 0;
  return larger;
}

inline void release(void* memory) {
  live -= memory != nullptr ? 1 : 0;
  std::free(memory);
}

}  // namespace failing_allocations
