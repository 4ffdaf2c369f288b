// Derives the limit of connections from RLIMIT_NOFILE.
#include "server/connections_max.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include "backend/system.h"

namespace tambour::detail::server {

std::size_t derived_connections_max(std::size_t fds_max) noexcept {
  constexpr std::size_t others_min = 64;  // Descriptors of the loops, of files, of clients.
  const std::size_t others = std::max(fds_max / 8, others_min);
  const std::size_t left = fds_max - std::min(fds_max, others);
  return std::max({left, fds_max / 2, std::size_t{1}});
}

std::size_t connections_max_of(const ListenOptions& options,
                               const backend::System& system) noexcept {
  if (options.connections_max) return *options.connections_max;
  rlimit fds{};
  if (&system != &backend::kernel() || ::getrlimit(RLIMIT_NOFILE, &fds) != 0 ||
      fds.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  return derived_connections_max(fds.rlim_cur);
}

}  // namespace tambour::detail::server
