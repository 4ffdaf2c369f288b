// How often is often enough: sanitizers and counters slow everything down, and see in a few
// thousand rounds what the bare program would need a million for.
#pragma once

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

/// `rounds`, or a fiftieth of it under a sanitizer, or where lines and branches are counted:
/// clang's counters are told by this variable where to go.
inline std::size_t scaled(std::size_t rounds) {
  static const bool counted = std::getenv("LLVM_PROFILE_FILE") != nullptr;
  return (sanitized || counted) && rounds >= 1000 ? rounds / 50 : rounds;
}

}  // namespace tambour::test
