// Replaces operator new, so that a test can refuse memory.
#include "faults/allocations.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace tambour::test {
namespace {

struct Plan {
  unsigned first = 0;
  unsigned times = 0;
  unsigned count = 0;
  bool hit = false;
};

constinit thread_local Plan plan;

bool refused() noexcept {
  if (plan.first == 0) return false;
  ++plan.count;
  if (plan.count < plan.first || plan.count - plan.first >= plan.times) return false;
  return plan.hit = true;
}

void* allocate(std::size_t size) noexcept {
  return refused() ? nullptr : std::malloc(std::max(size, std::size_t{1}));
}

void* allocate(std::size_t size, std::align_val_t alignment) noexcept {
  if (refused()) return nullptr;
  const auto unit = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  return std::aligned_alloc(unit, std::max((size + unit - 1) / unit * unit, unit));
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void refuse_memory(unsigned nth, unsigned times) noexcept {
  plan = {.first = nth, .times = times, .count = 0, .hit = false};
}
void grant_memory() noexcept { plan.first = 0; }
bool memory_was_refused() noexcept { return plan.hit; }

}  // namespace tambour::test

using tambour::test::allocate;
using tambour::test::or_throw;

void* operator new(std::size_t size) { return or_throw(allocate(size)); }
void* operator new[](std::size_t size) { return or_throw(allocate(size)); }
void* operator new(std::size_t size, std::align_val_t unit) {
  return or_throw(allocate(size, unit));
}
void* operator new[](std::size_t size, std::align_val_t unit) {
  return or_throw(allocate(size, unit));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t unit, const std::nothrow_t&) noexcept {
  return allocate(size, unit);
}
void* operator new[](std::size_t size, std::align_val_t unit, const std::nothrow_t&) noexcept {
  return allocate(size, unit);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
