// The URL of an upstream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/reverse_proxy.h>

namespace tambour::http::detail::proxy {

struct Target {
  std::string url{};
  unsigned weight = 1;
  std::size_t index = 0;   ///< In ReverseProxyOptions::upstreams.
  std::string host{};      ///< A name, an address, or "unix:" and a path.
  std::uint16_t port = 0;  ///< 0 for Unix paths.
  bool is_secure = false;
  bool is_name = false;     ///< It has to be resolved.
  std::string authority{};  ///< As the Host field has it.
  std::string path{};       ///< In front of the paths of requests; without a slash at its end.

  [[nodiscard]] bool is_unix() const noexcept { return port == 0; }
};

/// Fails as ReverseProxy::create() does.
[[nodiscard]] Result<std::vector<Target>> parse_targets(const std::vector<Upstream>& upstreams);

}  // namespace tambour::http::detail::proxy
