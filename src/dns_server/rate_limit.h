// Response rate limiting: a limit for each network of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tambour/net/endpoint.h>

namespace tambour::detail::dns_server {

enum class Verdict : std::uint8_t { send, truncate, drop };

class RateLimit {
 public:
  /// 0: no limit. `key`: random, so that an attacker does not know which networks share a slot.
  RateLimit(unsigned per_second, std::uint64_t key) noexcept
      : per_second_(per_second), key_(key | 1U) {}

  [[nodiscard]] Verdict check(const Endpoint& client, std::int64_t now_ns);

 private:
  struct Slot {
    std::int64_t since_ns = 0;
    unsigned sent = 0;  ///< In the second that began at `since_ns`.
  };
  /// Networks with the same slot share the limit: memory is bounded, and a client that takes turns
  /// with another network gets no more.
  static constexpr unsigned slot_bits = 12;

  unsigned per_second_;
  std::uint64_t key_;
  std::vector<Slot> slots_;
};

}  // namespace tambour::detail::dns_server
