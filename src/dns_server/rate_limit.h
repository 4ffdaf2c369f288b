// Response rate limiting: a bucket of tokens for each network of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tambour/endpoint.h>

namespace tambour::dns_server {

enum class Verdict : std::uint8_t { send, truncate, drop };

class RateLimit {
 public:
  /// 0: no limit.
  explicit RateLimit(unsigned per_second) noexcept : per_second_(per_second) {}

  [[nodiscard]] Verdict check(const Endpoint& client, std::int64_t now_ns);

 private:
  struct Bucket {
    std::uint64_t network = 0;
    std::int64_t since_ns = 0;
    unsigned sent = 0;  ///< In the second that began at `since_ns`.
  };
  /// Networks with the same slot replace each other: memory is bounded, and an attacker who uses
  /// many networks at most gets the limit for each.
  static constexpr std::size_t slots = 4096;

  unsigned per_second_;
  std::vector<Bucket> buckets_;
};

}  // namespace tambour::dns_server
