// Mutants: seeded bugs that the tests must catch.
//
// They exist only in a build with TAMBOUR_FAULTS, where a test selects one. In all other builds the
// selection is the constant `none`, so no mutant is compiled.
#pragma once

#include <cstdint>

namespace tambour::detail::base {

enum class Mutant : std::uint8_t {
  none,
  stopped_is_invoked,  ///< A pending watcher that is stopped is invoked anyway.
  pushed_back_lost,    ///< A timer whose deadline moves later leaves the timing wheel.
};

#ifdef TAMBOUR_FAULTS
inline Mutant mutant = Mutant::none;
#else
inline constexpr Mutant mutant = Mutant::none;
#endif

}  // namespace tambour::detail::base
