// The pipe by which a successor says that it serves, and what both programs call it.
#pragma once

#include <tambour/unique_fd.h>

namespace tambour::net {

/// SD_LISTEN_FDS_START: listeners are passed from here on, and the pipe behind them.
constexpr int first_passed = 3;
constexpr const char* ready_variable = "TAMBOUR_READY_FD";

/// Takes the pipe out of the environment, and makes it close-on-exec: a program that this one
/// starts before it serves must not speak for it. It lies behind so many listeners. While there is
/// one thread.
void keep_ready_pipe(int listeners) noexcept;

/// That which was kept, or which the environment names; not open where there is none, or what is
/// named cannot have been passed. Another time there is none.
[[nodiscard]] UniqueFd take_ready_pipe() noexcept;

}  // namespace tambour::net
