// Which processor who runs on, and how much of it was used.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace bench {

/// The processor that the runner has pinned the program to, or, by hand, the one that it ran on
/// when this was first called: the server's, the loop's.
int own_processor();

/// Moves the calling thread, or a process that has but one, to the others that it, or else its
/// parent, may use: a client on the server's processor would measure the scheduler. Fails where
/// there is no other.
void move_to_another_processor();

/// Moves it to own_processor().
void move_to_own_processor();

/// Processor time that a process has used, user and system, of all its threads.
std::int64_t cpu_ns(pid_t process);
std::int64_t own_cpu_ns();

}  // namespace bench
