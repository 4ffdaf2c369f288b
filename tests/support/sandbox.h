// What a container's sandbox forbids, for this process and its children, from now on.
#pragma once

namespace tambour::test {

/// io_uring_setup(2), io_uring_enter(2) and io_uring_register(2) fail with `error`, by a seccomp
/// filter. False where filters cannot be installed here.
bool forbid_io_uring(int error);

/// epoll_pwait2(2) ends the process with SIGSYS. False if filters cannot be installed here.
bool kill_for_epoll_pwait2();

}  // namespace tambour::test
