// Which addresses the kernel sends from the same source address, without asking it for each.
//
// Routes, rules, and whatever else decides about the source address apply to prefixes. The first
// and last addresses of all prefixes divide the addresses into ranges; the addresses of one range
// have all prefixes in common, and therefore the source address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/net/ip_address.h>

#include "backend/system.h"

namespace tambour::dns::detail {

class Routes {
 public:
  /// Reads the prefixes from the kernel: rtnetlink(7). Without netlink, with routes that have
  /// several paths (the kernel chooses one by the address), or with too many of them, each address
  /// becomes a range of its own.
  void load(backend::System& system);
  void clear() noexcept { begins_.clear(); }

  /// An address that stands for the range: equal for addresses of the same range only.
  [[nodiscard]] IpAddress range_of(const IpAddress& address) const noexcept;

  /// For tests: the number of ranges; 0 if each address is one.
  [[nodiscard]] std::size_t size() const noexcept { return begins_.size(); }

 private:
  /// IPv4 addresses as ::ffff:a.b.c.d, for which the routes of IPv4 apply.
  using Key = std::array<std::uint8_t, 16>;
  struct Dump;

  bool read_all(backend::System& system, int fd);
  bool read(backend::System& system, int fd, const Dump& dump);
  bool take(std::span<const std::byte> message, const Dump& dump);
  void add(const IpAddress& prefix, unsigned bits);

  std::vector<Key> begins_;  ///< The first address of each range, in ascending order.
};

}  // namespace tambour::dns::detail
