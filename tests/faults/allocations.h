// Allocation failures on demand: counts the operator new calls of this thread and fails chosen
// ones.
//
// Linking this file replaces operator new and operator delete in the whole program.
#pragma once

namespace tambour::test {

/// Fails the `nth` allocation of this thread (from 1) and the `times` - 1 after it: operator new
/// throws std::bad_alloc, and nothrow forms return null.
void refuse_memory(unsigned nth, unsigned times = 1) noexcept;

/// From now on, all allocations succeed.
void grant_memory() noexcept;

/// Returns whether the last planned failure has occurred.
bool memory_was_refused() noexcept;

}  // namespace tambour::test
