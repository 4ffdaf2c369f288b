// Whether a seccomp(2) filter restricts the thread.
//
// A filter may kill the process for a call that it does not know, so a call that is newer than most
// filters must not be probed by calling it. What is decided here is decided by calls that filters
// have long known.
#pragma once

namespace tambour::base {

/// Whether a filter was inherited or installed before the first call of this function in the
/// process, as /proc/self/status says; true if that cannot be read. A filter that is installed
/// before exec(2) lets the dynamic linker open files, so it allows these calls too.
bool seccomp_filter_was_inherited() noexcept;

/// Whether there is a filter now: prctl(PR_GET_SECCOMP).
bool seccomp_filter_is_installed() noexcept;

}  // namespace tambour::base
