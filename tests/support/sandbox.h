// What a container's sandbox forbids, for this process and its children, from now on.
#pragma once

namespace tambour::test {

/// io_uring_setup(2), io_uring_enter(2) and io_uring_register(2) fail with `error`, by a seccomp
/// filter. False where filters cannot be installed here.
bool forbid_io_uring(int error);

}  // namespace tambour::test
