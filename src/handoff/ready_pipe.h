// The pipe on which a new process reports that it serves, and its environment variable.
#pragma once

#include <tambour/base/unique_fd.h>

namespace tambour::detail::handoff {

/// SD_LISTEN_FDS_START: the first inherited listener; the pipe follows the last listener.
constexpr int first_passed = 3;
constexpr const char* ready_variable = "TAMBOUR_READY_FD";

/// Removes the pipe from the environment and sets close-on-exec on it: a child that this program
/// starts before it serves must not report readiness in its place. `listeners`: the number of
/// inherited listeners, whose descriptors precede that of the pipe. Call it while the process has
/// one thread.
void keep_ready_pipe(int listeners) noexcept;

/// Returns the pipe that was kept, or else the one that the environment names. The result is not
/// open if there is none, or if the named descriptor cannot be the inherited pipe. A second call
/// returns none.
[[nodiscard]] UniqueFd take_ready_pipe() noexcept;

}  // namespace tambour::detail::handoff
