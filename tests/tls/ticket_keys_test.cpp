// The rotation of the keys of session tickets, with a clock that the test sets.
#include "tls/resumption/ticket_keys.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <openssl/evp.h>

namespace tambour::ticket_keys_test {
namespace {

using namespace std::chrono_literals;
using Name = std::array<unsigned char, 16>;

std::int64_t time_s = 0;
std::int64_t now_s() noexcept { return time_s; }

/// Calls use() as OpenSSL does.
class Tickets {
 public:
  explicit Tickets(const std::string& secret) : keys_(100s, secret, &now_s) {
    EVP_MAC* const kind = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    mac_ = EVP_MAC_CTX_new(kind);
    EVP_MAC_free(kind);
  }
  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;
  ~Tickets() {
    EVP_CIPHER_CTX_free(cipher_);
    EVP_MAC_CTX_free(mac_);
  }

  /// Returns the name of the key that encrypts now.
  Name issue() {
    Name name{};
    EXPECT_EQ(keys_.use(name.data(), iv_.data(), cipher_, mac_, true), 1);
    return name;
  }
  /// 0: not accepted; 1: accepted; 2: accepted, and to be renewed.
  int accept(Name name) { return keys_.use(name.data(), iv_.data(), cipher_, mac_, false); }

 private:
  tls::detail::TicketKeys keys_;
  std::array<unsigned char, EVP_MAX_IV_LENGTH> iv_{};
  EVP_CIPHER_CTX* cipher_ = EVP_CIPHER_CTX_new();
  EVP_MAC_CTX* mac_ = nullptr;
};

TEST(TicketKeys, are_replaced_after_half_a_lifetime_and_forgotten_after_one_and_a_half) {
  for (const std::string& secret : {std::string(), std::string(32, 's')}) {
    SCOPED_TRACE(secret);
    time_s = 1000;
    Tickets tickets(secret);
    const Name first = tickets.issue();
    EXPECT_EQ(tickets.accept(first), 1);
    time_s = 1049;
    EXPECT_EQ(tickets.issue(), first);
    EXPECT_EQ(tickets.accept(first), 1);
    time_s = 1060;
    const Name second = tickets.issue();
    EXPECT_NE(second, first);
    EXPECT_EQ(tickets.accept(first), 2);
    EXPECT_EQ(tickets.accept(second), 1);
    time_s = 1149;
    EXPECT_EQ(tickets.accept(first), 2);
    time_s = 1152;
    EXPECT_EQ(tickets.accept(first), 0);
    time_s = 1500;
    EXPECT_EQ(tickets.accept(second), 0);
    EXPECT_EQ(tickets.accept(tickets.issue()), 1);
  }
}

TEST(TicketKeys, of_one_secret_are_the_same_and_tolerate_clocks) {
  time_s = 1000;
  Tickets one(std::string(32, 's'));
  Tickets two(std::string(32, 's'));
  Tickets other(std::string(32, 'x'));
  EXPECT_EQ(two.accept(one.issue()), 1);
  EXPECT_EQ(other.accept(one.issue()), 0);
  time_s = 1055;
  const Name ahead = one.issue();
  time_s = 1000;
  EXPECT_EQ(two.accept(ahead), 2);
}

TEST(TicketKeys, without_a_secret_are_random) {
  time_s = 1000;
  Tickets one("");
  Tickets two("");
  EXPECT_EQ(two.accept(one.issue()), 0);
  EXPECT_EQ(one.accept(Name{}), 0);
}

}  // namespace
}  // namespace tambour::ticket_keys_test
