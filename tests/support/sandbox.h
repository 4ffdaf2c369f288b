// Restrictions of container sandboxes, for this process and its children.
#pragma once

namespace tambour::test {

/// Installs a seccomp filter with which io_uring_setup(2), io_uring_enter(2) and
/// io_uring_register(2) fail with `error`. Returns false if the filter cannot be installed.
bool forbid_io_uring(int error);

/// Installs a seccomp filter with which pidfd_send_signal(2) fails with `error`. Returns false if
/// the filter cannot be installed.
bool forbid_pidfd_send_signal(int error);

/// Installs a seccomp filter with which timerfd_create(2) and timerfd_settime(2) fail with `error`.
/// Returns false if the filter cannot be installed.
bool forbid_timerfd(int error);

/// Installs a seccomp filter with which epoll_pwait2(2), io_uring_setup(2), openat2(2) and
/// preadv2(2) kill the process with SIGSYS. Returns false if the filter cannot be installed.
bool kill_for_new_calls();

}  // namespace tambour::test
