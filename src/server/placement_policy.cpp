// Chooses the next loop, the least busy one, or the one that the peer's address selects.
#include "server/placement_policy.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace tambour::detail::server {
namespace {

/// Hashes only the address, because connections from one machine come from many ports.
std::uint64_t hash_of_peer(const SocketStream& stream) noexcept {
  const auto peer = stream.peer_endpoint();
  if (!peer) return 0;
  const auto bytes = [](const void* data, std::size_t size) {
    return std::hash<std::string_view>()({static_cast<const char*>(data), size});
  };
  switch (peer->family()) {
    case AF_INET:
      return bytes(&reinterpret_cast<const sockaddr_in*>(peer->data())->sin_addr, sizeof(in_addr));
    case AF_INET6:
      return bytes(&reinterpret_cast<const sockaddr_in6*>(peer->data())->sin6_addr,
                   sizeof(in6_addr));
    default:
      return bytes(peer->data(), peer->size());
  }
}

}  // namespace

EventLoop& PlacementPolicy::choose(EventLoop& accepted_on, const SocketStream& stream) noexcept {
  switch (placement_) {
    case Placement::kernel:
    case Placement::processor:
      break;
    case Placement::round_robin:
      return group_[next_index_++ % group_.size()];
    case Placement::peer_address:
      return group_.by_hash(hash_of_peer(stream));
    case Placement::least_loaded:
      return group_.least_loaded();
  }
  return accepted_on;
}

}  // namespace tambour::detail::server
