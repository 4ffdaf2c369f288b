// Faults that are planted on request, to see that the tests find what they are there to find.
//
// Only in a copy of the library that is compiled for that with TAMBOUR_CANARIES, where a test
// chooses one: in any other, none is a constant, and nothing of them is compiled.
#pragma once

#include <cstdint>

namespace tambour::base {

enum class Canary : std::uint8_t {
  none,
  stopped_is_told,   ///< A watcher that was due when it was stopped is called all the same.
  pushed_back_lost,  ///< A timer whose deadline has moved later is not put back into the heap.
};

#ifdef TAMBOUR_CANARIES
inline Canary canary = Canary::none;
#else
inline constexpr Canary canary = Canary::none;
#endif

}  // namespace tambour::base
