// Instructions that not every processor has.
#pragma once

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::ws {

/// True if the processor has AVX2. Reads a variable that is set when the program starts.
[[nodiscard]] inline bool has_avx2() noexcept {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

}  // namespace tambour::http::detail::ws
