// How many connections a server has at most.
#pragma once

#include <cstddef>

#include <tambour/net/listen_options.h>

namespace tambour {

namespace detail::backend {
class System;
}

namespace detail::server {

/// Returns the limit for connections of a process that may open `fds_max` file descriptors; see
/// ListenOptions::connections_max.
[[nodiscard]] std::size_t derived_connections_max(std::size_t fds_max) noexcept;

/// Returns ListenOptions::connections_max, or what follows from RLIMIT_NOFILE now. `system` is that
/// of the server's loops: simulated hosts have no limit.
[[nodiscard]] std::size_t connections_max_of(const ListenOptions& options,
                                             const backend::System& system) noexcept;

}  // namespace detail::server
}  // namespace tambour
