// Copies of short texts.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace tambour::detail::bytes {

/// Copies `half` to twice as many bytes. Its two halves may overlap.
template <std::size_t half>
inline void copy_halves(char* to, std::string_view from) noexcept {
  std::memcpy(to, from.data(), half);
  std::memcpy(to + from.size() - half, from.data() + from.size() - half, half);
}

/// The same as memcpy(3), whose call costs more than the copy of a name or a value. `to` must not
/// overlap `from`. Returns the end of the copy.
inline char* copy_short(char* to, std::string_view from) noexcept {
  const std::size_t size = from.size();
  if (size > 64) {
    std::memcpy(to, from.data(), size);
  } else if (size > 32) {
    copy_halves<32>(to, from);
  } else if (size > 16) {
    copy_halves<16>(to, from);
  } else if (size >= 8) {
    copy_halves<8>(to, from);
  } else if (size >= 4) {
    copy_halves<4>(to, from);
  } else if (size > 0) {
    to[0] = from.front();
    to[size / 2] = from[size / 2];
    to[size - 1] = from.back();
  }
  return to + size;
}

}  // namespace tambour::detail::bytes
