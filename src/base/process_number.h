// Tells a process from the children that it forks, without a system call.
#pragma once

#include <atomic>

namespace tambour::base {

/// Counts in each child after fork(2); not after vfork(2) or a bare clone(2), whose children may
/// only call exec. Use process_number().
extern std::atomic<unsigned> forks_survived;

/// Makes forks_survived count; once is enough. For the constructors of what remembers the number.
void count_forks() noexcept;

/// Differs between a process and each of its children that were forked after count_forks().
inline unsigned process_number() noexcept { return forks_survived.load(std::memory_order_relaxed); }

}  // namespace tambour::base
