// Which processor a process runs on.
#pragma once

namespace bench {

/// Leaves the processor that the runner has pinned the program to, which is the server's: a client
/// there would measure the scheduler. Fails where there is no other.
void move_to_another_processor();

}  // namespace bench
