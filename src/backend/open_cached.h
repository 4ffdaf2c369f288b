// Opening files whose names the kernel knows, without waiting for a disk or a file server.
#pragma once

#include "backend/system.h"

namespace tambour::detail::backend {

/// Like System::open() without O_CREAT, but fails with EAGAIN if the kernel would have to wait to
/// look up the path: openat2(2), RESOLVE_CACHED. With O_PATH or O_NONBLOCK it does not wait for a
/// FIFO either. Fails with ENOSYS if that is not possible: on a simulated host, and under a seccomp
/// filter, which may kill the process for openat2(2); and with ENOSYS or EINVAL on kernels older
/// than Linux 5.12.
[[nodiscard]] int open_cached(const System& system, const char* path, int flags) noexcept;

}  // namespace tambour::detail::backend
