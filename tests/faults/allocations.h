// The memory of this thread, as far as operator new gives it: counted, and refused on demand.
//
// Linking this file replaces operator new and operator delete in the whole program.
#pragma once

namespace tambour::test {

/// The `nth` allocation of this thread, from 1 on, is refused, and those after it up to so many:
/// std::bad_alloc, or null where nothing may be thrown.
void refuse_memory(unsigned nth, unsigned times = 1) noexcept;

/// From now on, everything is granted.
void grant_memory() noexcept;

/// Whether the last refusal has come about.
bool memory_was_refused() noexcept;

}  // namespace tambour::test
