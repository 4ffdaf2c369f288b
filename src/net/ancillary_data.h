// File descriptors and credentials in the ancillary data of Unix sockets: unix(7), cmsg(3).
#pragma once

#include <sys/socket.h>

#include <optional>
#include <span>
#include <vector>

#include <tambour/base/unique_fd.h>
#include <tambour/net/unix_stream.h>

namespace tambour::detail::net {

/// Puts descriptors into a message whose control buffer is large enough. Without any, it gets no
/// ancillary data.
void put_descriptors(msghdr& message, std::span<const int> descriptors) noexcept;

/// Returns the received descriptors. Throws std::bad_alloc after closing them.
[[nodiscard]] std::vector<UniqueFd> take_descriptors(msghdr& message);

/// Returns the sender of a message, if the kernel has told it.
[[nodiscard]] std::optional<PeerCredentials> credentials_of(msghdr& message) noexcept;

}  // namespace tambour::detail::net
