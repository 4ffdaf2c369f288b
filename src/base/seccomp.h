// Detects whether a seccomp(2) filter restricts the thread.
//
// A filter may kill the process for an unknown system call, so a call that is newer than most
// filters must not be probed by making it. Detection uses only calls that filters have long known.
#pragma once

namespace tambour::detail::base {

/// Returns whether a filter was inherited, or installed before the first call of this function in
/// the process, according to /proc/self/status; true if that cannot be read. A filter installed
/// before exec(2) must let the dynamic linker open files, so it allows this check too.
bool seccomp_filter_was_inherited() noexcept;

/// Returns whether a filter is installed now: prctl(PR_GET_SECCOMP).
bool seccomp_filter_is_installed() noexcept;

}  // namespace tambour::detail::base
