// Prefetching of objects that are rarely in a cache, because thousands of others are used between
// two uses of each.
#pragma once

#include <cstddef>

namespace tambour::http {

/// Begins to load the lines of `size` bytes into the caches. Has no other effect.
inline void prefetch(const void* object, std::size_t size) noexcept {
  constexpr std::size_t line_bytes = 64;
  const auto* const begin = static_cast<const char*>(object);
  for (std::size_t at = 0; at < size; at += line_bytes) __builtin_prefetch(begin + at);
  // The last line, if the object does not begin with a line.
  __builtin_prefetch(begin + size - 1);
}

}  // namespace tambour::http
