// Processor affinity and processor time.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace bench {

/// The processor for the server or loop: the one that the runner pinned the program to, or, without
/// the runner, the one that the program ran on at the first call.
int pinned_processor();

/// Moves the calling thread to the other processors that it, or else its parent, may use. A client
/// on the processor of the server would measure the scheduler. Fails if there is no other
/// processor.
void move_to_another_processor();

/// Moves the calling thread to pinned_processor().
void move_to_pinned_processor();

/// User and system time of all threads of a process, in nanoseconds.
std::int64_t cpu_ns(pid_t process);
std::int64_t own_cpu_ns();

}  // namespace bench
