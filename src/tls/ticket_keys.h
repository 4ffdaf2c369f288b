// The keys of session tickets.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "tls/openssl.h"

namespace tambour::tls {

/// A ticket is encrypted with the newest key. A key is replaced after half of the lifetime of a
/// session, and forgotten when every ticket that it encrypted has expired, so that a key that is
/// stolen later does not decrypt older sessions.
///
/// Thread: callable from any thread.
class TicketKeys {
 public:
  explicit TicketKeys(std::chrono::seconds lifetime) noexcept : lifetime_(lifetime) {}

  /// The callback of SSL_CTX_set_tlsext_ticket_key_evp_cb().
  int use(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
          bool encrypt) noexcept;

 private:
  struct Key {
    std::array<unsigned char, 16> name{};
    std::array<unsigned char, 32> cipher{};
    std::array<unsigned char, 32> mac{};
    std::int64_t created_s = 0;  ///< By the monotonic clock; 0: no key.
  };

  [[nodiscard]] bool rotate(std::int64_t now_s) noexcept;
  [[nodiscard]] Key copy(const unsigned char* name, bool encrypt, bool& newest) noexcept;

  const std::chrono::seconds lifetime_;
  std::mutex mutex_;
  std::array<Key, 3> keys_;  ///< The newest first.
};

}  // namespace tambour::tls
