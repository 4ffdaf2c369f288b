// The network of a client, and the state of its limit.
#include "dns_server/rate_limit.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace tambour::detail::dns_server {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

/// The first 24 bits of an IPv4 address, or 56 of an IPv6 address, and the family.
std::uint64_t network_of(const Endpoint& client) noexcept {
  std::uint64_t network = client.family() == AF_INET ? 4 : 6;
  std::array<std::uint8_t, 7> bytes{};
  if (client.family() == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(client.data());
    std::memcpy(bytes.data(), &v4.sin_addr, 3);
  } else {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(client.data());
    const auto* const address = reinterpret_cast<const std::uint8_t*>(&v6.sin6_addr);
    // An IPv4 client of an IPv6 socket.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      network = 4;
      std::copy_n(address + 12, 3, bytes.begin());
    } else {
      std::copy_n(address, bytes.size(), bytes.begin());
    }
  }
  for (const std::uint8_t byte : bytes) network = network << 8U | byte;
  return network;
}

}  // namespace

Verdict RateLimit::check(const Endpoint& client, std::int64_t now_ns) {
  if (per_second_ == 0) return Verdict::send;
  if (slots_.empty()) slots_.resize(std::size_t{1} << slot_bits);
  // Multiply-shift hashing: for a random odd key, two networks share a slot with a probability of
  // at most 2 in the number of slots.
  Slot& slot = slots_[network_of(client) * key_ >> (64U - slot_bits)];
  if (now_ns - slot.since_ns >= second_ns) slot = {.since_ns = now_ns};
  if (++slot.sent <= per_second_) return Verdict::send;
  return (slot.sent - per_second_) % 2 == 0 ? Verdict::truncate : Verdict::drop;
}

}  // namespace tambour::detail::dns_server
