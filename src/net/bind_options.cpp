// Sets BindOptions on a socket.
#include <tambour/net/bind_options.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/failure.h"
#include "net/socket_calls.h"

namespace tambour::detail::net {
namespace {

/// IPV6_FREEBIND, since Linux 4.15, which older headers lack.
constexpr int v6_freebind = 78;

}  // namespace

Result<> set_bind_options(backend::System& system, int fd, int family,
                          const BindOptions& options) noexcept {
  if (options.interface.empty() && !options.transparent && !options.freebind) return {};
  if (family != AF_INET && family != AF_INET6) return base::failure(EAFNOSUPPORT);
  const bool is_v4 = family == AF_INET;
  const int level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (!options.interface.empty()) {
    const auto size = static_cast<socklen_t>(options.interface.size());
    // The kernel would cut it, and find another interface.
    if (options.interface.contains('\0')) return base::failure(EINVAL);
    if (size >= 16) return base::failure(ENODEV);  // IFNAMSIZ
    if (system.setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, options.interface.data(), size) != 0)
      return base::failure(errno);
  }
  if (options.transparent) {
    const int name = is_v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT;
    if (auto set = set_option(system, fd, level, name, 1); !set) return set;
  }
  if (options.freebind) return set_option(system, fd, level, is_v4 ? IP_FREEBIND : v6_freebind, 1);
  return {};
}

}  // namespace tambour::detail::net
