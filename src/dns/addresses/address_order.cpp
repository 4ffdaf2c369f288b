// Sorts addresses by RFC 6724. The source address for each destination comes from the routes that
// are known, or from the kernel by connect(2) of a UDP socket.
#include "dns/addresses/address_order.h"

#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include <tambour/net/endpoint.h>

namespace tambour::dns::detail {
namespace {

unsigned common_prefix(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) noexcept {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    return static_cast<unsigned>(i * 8) +
           static_cast<unsigned>(std::countl_zero(static_cast<std::uint8_t>(a[i] ^ b[i])));
  }
  return static_cast<unsigned>(a.size() * 8);
}

/// RFC 6724, section 2.1.
struct Policy {
  std::array<std::uint8_t, 16> prefix;
  unsigned bits;
  unsigned precedence;
  unsigned label;
};
// The longest matching prefix applies, so they are sorted by length.
constexpr Policy policies[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 35, 4},
    {{}, 96, 1, 3},
    {{0x20, 0x01}, 32, 5, 5},
    {{0x20, 0x02}, 16, 30, 2},
    {{0x3f, 0xfe}, 16, 1, 12},
    {{0xfe, 0xc0}, 10, 1, 11},
    {{0xfc}, 7, 3, 13},
    {{}, 0, 40, 1},
};

const Policy& policy_of(const IpAddress& address) noexcept {
  const auto bytes = address.mapped_bytes();
  return *std::ranges::find_if(policies, [&](const Policy& policy) {
    return common_prefix(bytes, policy.prefix) >= policy.bits;
  });
}

/// RFC 6724, section 3.1 and 3.2.
unsigned scope_of(const IpAddress& address) noexcept {
  constexpr unsigned link_local = 2;
  constexpr unsigned site_local = 5;
  constexpr unsigned global = 14;
  // Unlike the functions below, the rules do not look into a mapped address.
  if (address.is_v4_mapped()) return global;
  if (address.is_loopback() || address.is_link_local()) return link_local;
  if (address.is_v4()) return global;
  const auto bytes = address.bytes();
  if (bytes[0] == 0xff) return bytes[1] & 0xfU;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0xc0) return site_local;
  return global;
}

std::size_t hash_of(const IpAddress& address) noexcept {
  std::uint32_t hash = address.is_v6() ? 1U : 2U;
  for (const std::uint8_t byte : address.bytes()) hash = (hash ^ byte) * 16777619U;
  return hash ^ hash >> 16U;
}

}  // namespace

bool is_preferred(const Destination& a, const Destination& b) noexcept {
  // Rule 1: avoid unusable destinations.
  if (a.from.has_value() != b.from.has_value()) return a.from.has_value();
  const Policy& policy_a = policy_of(a.to);
  const Policy& policy_b = policy_of(b.to);
  const unsigned scope_a = scope_of(a.to);
  const unsigned scope_b = scope_of(b.to);
  if (a.from) {
    // Rule 2: prefer matching scope.
    const bool scope_matches_a = scope_a == scope_of(*a.from);
    const bool scope_matches_b = scope_b == scope_of(*b.from);
    if (scope_matches_a != scope_matches_b) return scope_matches_a;
    // Rule 5: prefer matching label.
    const bool label_matches_a = policy_a.label == policy_of(*a.from).label;
    const bool label_matches_b = policy_b.label == policy_of(*b.from).label;
    if (label_matches_a != label_matches_b) return label_matches_a;
  }
  // Rule 6: prefer higher precedence.
  if (policy_a.precedence != policy_b.precedence) return policy_a.precedence > policy_b.precedence;
  // Rule 8: prefer smaller scope.
  if (scope_a != scope_b) return scope_a < scope_b;
  // Rule 9: use the longest matching prefix.
  if (a.from && a.to.is_v6() && b.to.is_v6())
    return common_prefix(a.to.bytes(), a.from->bytes()) >
           common_prefix(b.to.bytes(), b.from->bytes());
  return false;
}

void AddressOrder::sort(std::vector<IpAddress>& addresses, std::int64_t now_ns) {
  if (addresses.size() < 2) return;
  std::vector<Destination> destinations;
  destinations.reserve(addresses.size());
  for (const IpAddress& address : addresses)
    destinations.push_back({.to = address, .from = source_for(address, now_ns)});
  std::ranges::stable_sort(destinations, is_preferred);
  std::ranges::transform(destinations, addresses.begin(), &Destination::to);
}

const std::optional<IpAddress>& AddressOrder::source_for(const IpAddress& to, std::int64_t now_ns) {
  if (known_.empty() || now_ns >= known_until_ns_) {
    known_.assign(slots, Known());
    known_until_ns_ = now_ns + remembered_ns;
    routes_.clear();
    asked_ = 0;
  }
  const auto slot_of = [this](const IpAddress& range) -> Known& {
    return known_[hash_of(range) % slots];
  };
  IpAddress range = routes_.range_of(to);
  if (const Known& known = slot_of(range); known.is_set && known.range == range) return known.from;
  if (++asked_ == asked_max) {
    routes_.load(system_);
    known_.assign(slots, Known());
    range = routes_.range_of(to);
  }
  Known& known = slot_of(range);
  known = {.is_set = true, .range = range, .from = ask_kernel(to)};
  return known.from;
}

std::optional<IpAddress> AddressOrder::ask_kernel(const IpAddress& to) noexcept {
  constexpr std::uint16_t any_port = 53;
  const Endpoint endpoint(to, any_port);
  int& fd = probes_[to.is_v6() ? 1 : 0];
  if (fd < 0)
    fd = system_.socket(endpoint.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  if (fd < 0) return std::nullopt;
  std::optional<IpAddress> from;
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  auto* const any = reinterpret_cast<sockaddr*>(&local);
  if (system_.connect(fd, endpoint.data(), endpoint.size()) == 0 &&
      system_.getsockname(fd, any, &size) == 0) {
    if (const auto source = Endpoint::from(any, size)) from = source->ip_address();
  }
  if (from) {
    // The kernel would keep the source address for the next destination.
    const sockaddr none{.sa_family = AF_UNSPEC, .sa_data = {}};
    if (system_.connect(fd, &none, sizeof none) != 0) close();
  }
  return from;
}

void AddressOrder::close() noexcept {
  for (int& fd : probes_) {
    if (fd >= 0) system_.close(std::exchange(fd, -1));
  }
}

}  // namespace tambour::dns::detail
