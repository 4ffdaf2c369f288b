// The order of the addresses of a host: RFC 6724, section 6.
//
// Rules 3, 4 and 7 (deprecated addresses, home addresses, tunnels) need information that system
// calls on sockets do not give, and have no effect. Rule 9 applies to IPv6 only: for IPv4 it would
// defeat the rotation of addresses by DNS servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/net/ip_address.h>

#include "backend/system.h"
#include "dns/addresses/routes.h"

namespace tambour::dns::detail {

class AddressOrder {
 public:
  explicit AddressOrder(backend::System& system) noexcept : system_(system) {}
  AddressOrder(const AddressOrder&) = delete;
  AddressOrder& operator=(const AddressOrder&) = delete;
  ~AddressOrder() { close(); }

  /// Sorts the addresses, the preferred one first. The kernel is asked for the source address of
  /// each (connect(2) on a UDP socket), and the answer is remembered for at most ten seconds: for
  /// this address, or after many of them, for all to which the same routes apply.
  void sort(std::vector<IpAddress>& addresses, std::int64_t now_ns);

  /// Closes the sockets that the lookups use. They are opened again when they are needed.
  void close() noexcept;
  /// In a forked child that has lost the descriptors.
  void disown() noexcept { probes_ = {-1, -1}; }

 private:
  struct Known {
    bool is_set = false;
    IpAddress range;                ///< Of Routes::range_of().
    std::optional<IpAddress> from;  ///< Empty if the addresses cannot be reached.
  };
  static constexpr std::size_t slots = 256;
  static constexpr std::int64_t remembered_ns = 10'000'000'000;
  /// Reading the routes costs about as much as asking for that many addresses.
  static constexpr unsigned asked_max = 32;

  [[nodiscard]] const std::optional<IpAddress>& source_for(const IpAddress& to,
                                                           std::int64_t now_ns);
  [[nodiscard]] std::optional<IpAddress> ask_kernel(const IpAddress& to) noexcept;

  backend::System& system_;
  std::array<int, 2> probes_{-1, -1};  ///< Sockets for IPv4 and IPv6, unconnected.
  std::vector<Known> known_;           ///< By hash of the range; a newer one replaces an older one.
  std::int64_t known_until_ns_ = 0;
  unsigned asked_ = 0;
  Routes routes_;
};

/// One destination of the rules, for tests.
struct Destination {
  IpAddress to;
  std::optional<IpAddress> from;
};
/// True if the rules prefer `a` to `b`.
[[nodiscard]] bool is_preferred(const Destination& a, const Destination& b) noexcept;

}  // namespace tambour::dns::detail
