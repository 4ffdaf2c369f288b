// The rate limit of dns::Server, and clients that try to evade it.
#include "dns_server/rate_limit.h"

#include <netinet/in.h>

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::rate_limit_test {
namespace {

using namespace std::chrono_literals;
using detail::dns_server::RateLimit;
using detail::dns_server::Verdict;

/// An address in the /24 network with this number.
Endpoint client_in(std::uint32_t network) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(network << 8U | 1U);
  return Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
}

/// An attacker who forges source addresses takes turns between the victim and another network, of
/// which some share the victim's slot.
TEST(RateLimiting, of_a_network_is_not_reset_by_another_network) {
  constexpr unsigned per_second = 10;
  constexpr std::uint32_t networks = 20'000;
  RateLimit limit(per_second, 0x0123'4567'89ab'cdefU);
  const Endpoint victim = client_in(networks);
  std::int64_t now_ns = 0;
  for (std::uint32_t other = 0; other < networks; ++other) {
    now_ns += std::chrono::nanoseconds(1s).count();
    const Endpoint client = client_in(other);
    unsigned sent = 0;
    for (unsigned i = 0; i < 2 * per_second; ++i) {
      static_cast<void>(limit.check(client, now_ns));
      if (limit.check(victim, now_ns) == Verdict::send) ++sent;
    }
    ASSERT_LE(sent, per_second) << other;
  }
}

TEST(RateLimiting, counts_each_network_by_itself) {
  constexpr unsigned per_second = 10;
  constexpr std::uint32_t networks = 100;
  RateLimit limit(per_second, 0x0123'4567'89ab'cdefU);
  unsigned sent = 0;
  for (std::uint32_t network = 0; network < networks; ++network) {
    for (unsigned i = 0; i < per_second; ++i)
      sent += limit.check(client_in(network), 0) == Verdict::send ? 1 : 0;
  }
  // Few share a slot.
  EXPECT_GE(sent, (networks - 10) * per_second);
}

TEST(RateLimiting, is_off_by_default) {
  RateLimit limit(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limit.check(client_in(1), 0), Verdict::send);
}

}  // namespace
}  // namespace tambour::rate_limit_test
