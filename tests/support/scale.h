// Scales the repetitions of tests. Sanitizers and coverage slow tests down, and sanitizers find
// errors in a few thousand repetitions for which an ordinary build needs a million.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tambour::test {

#if defined(__has_feature)
#define TAMBOUR_TEST_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TAMBOUR_TEST_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TAMBOUR_TEST_HAS_FEATURE(address_sanitizer)
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

#if defined(__SANITIZE_THREAD__) || TAMBOUR_TEST_HAS_FEATURE(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = address_sanitized;
#endif

/// Returns `rounds`, or a fiftieth of it, but at least 20, under a sanitizer or with coverage,
/// which LLVM_PROFILE_FILE indicates.
inline std::size_t scaled(std::size_t rounds) {
  static const bool coverage = std::getenv("LLVM_PROFILE_FILE") != nullptr;
  return sanitized || coverage ? std::min(rounds, std::max<std::size_t>(rounds / 50, 20)) : rounds;
}

}  // namespace tambour::test
