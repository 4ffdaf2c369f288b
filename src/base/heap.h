// The heap of the process.
#pragma once

namespace tambour::detail::base {

/// Gives the pages that consist of free memory back to the system: malloc_trim(3). No effect where
/// the C library has no such function.
void return_free_memory() noexcept;

}  // namespace tambour::detail::base
