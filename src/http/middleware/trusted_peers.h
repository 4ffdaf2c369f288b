// The peers whose fields are believed.
#pragma once

#include <algorithm>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/net/ip_address.h>

namespace tambour::http {

struct TrustedPeers {
  std::vector<IpNetwork> networks;
  bool has_unix_peers = false;

  [[nodiscard]] bool empty() const noexcept { return networks.empty() && !has_unix_peers; }
  [[nodiscard]] bool contains(const IpAddress& address) const noexcept {
    return std::ranges::any_of(
        networks, [&address](const IpNetwork& network) { return network.contains(address); });
  }
  [[nodiscard]] bool contains_peer_of(const Request& request) const noexcept {
    const Result<Endpoint> peer = request.connection().peer_endpoint();
    if (!peer) return false;
    const std::optional<IpAddress> address = peer->ip_address();
    return address ? contains(*address) : has_unix_peers;
  }
};

}  // namespace tambour::http
