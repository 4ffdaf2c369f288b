// The allocator of event_set_mem_functions(3).

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "libevent/event/core.h"

namespace {

void* (*malloc_function)(std::size_t) = nullptr;
void* (*realloc_function)(void*, std::size_t) = nullptr;
void (*free_function)(void*) = nullptr;

}  // namespace

void event_set_mem_functions(void* (*malloc_fn)(std::size_t),
                             void* (*realloc_fn)(void*, std::size_t), void (*free_fn)(void*)) {
  malloc_function = malloc_fn;
  realloc_function = realloc_fn;
  free_function = free_fn;
}

void* event_mm_malloc_(std::size_t size) {
  if (size == 0) return nullptr;
  return malloc_function != nullptr ? malloc_function(size) : std::malloc(size);
}

void* event_mm_calloc_(std::size_t count, std::size_t size) {
  if (count == 0 || size == 0) return nullptr;
  if (malloc_function == nullptr) return std::calloc(count, size);
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const memory = malloc_function(bytes);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

char* event_mm_strdup_(const char* text) {
  if (text == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  const std::size_t bytes = std::strlen(text) + 1;
  auto* const copy = static_cast<char*>(event_mm_malloc_(bytes));
  if (copy == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  std::memcpy(copy, text, bytes);
  return copy;
}

void* event_mm_realloc_(void* memory, std::size_t size) {
  return realloc_function != nullptr ? realloc_function(memory, size) : std::realloc(memory, size);
}

void event_mm_free_(void* memory) {
  if (free_function != nullptr) {
    free_function(memory);
  } else {
    std::free(memory);
  }
}
