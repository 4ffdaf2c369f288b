// waitid(2) without waiting.
#pragma once

#include <sys/wait.h>

#include <csignal>

#include "base/system_call.h"

namespace tambour::detail::events {

/// P_PIDFD, since Linux 5.4; older headers do not define it.
inline constexpr auto by_pidfd = static_cast<idtype_t>(3);

/// WNOHANG does not block and so is not interrupted, but a seccomp supervisor may return EINTR.
inline int wait_id(idtype_t type, id_t id, siginfo_t& info, int flags) noexcept {
  return base::uninterrupted(base::Call::waitid, ::waitid, type, id, &info, flags);
}

}  // namespace tambour::detail::events
