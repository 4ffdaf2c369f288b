// O_NONBLOCK on open file descriptions that several streams of the process share.
//
// Descriptors 0 and 1 may share one open file description that cannot be opened again: a socket
// under inetd, or the master side of a pseudoterminal. If a stream cleared the flag that it has set
// while another stream uses the same open file description, the other stream would block its loop.
#pragma once

namespace tambour::detail::io {

/// Sets O_NONBLOCK. Returns true if restore_blocking() must be called for `fd`; false if the
/// program itself has set the flag, or on failure. Callable from any thread.
bool share_nonblocking(int fd) noexcept;

/// Undoes one share_nonblocking(). The last call for an open file description clears O_NONBLOCK.
void restore_blocking(int fd) noexcept;

}  // namespace tambour::detail::io
