// The keys of session tickets.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/detail/namespaces.h>

#include "tls/openssl.h"

namespace tambour::tls::detail {

/// A ticket is encrypted with the newest key. A key is replaced after half of the lifetime of a
/// session, and forgotten when every ticket that it encrypted has expired, so that a key that is
/// stolen later does not decrypt older sessions.
///
/// With a secret, which several processes share, the keys are derived from it and the wall clock,
/// so that all of them have the same.
///
/// Thread: callable from any thread.
class TicketKeys {
 public:
  /// `secret` is empty, or at least `secret_bytes_min` bytes long. `now_s` returns a positive time
  /// in seconds: with a secret, that of a clock which all processes share. Tests replace it.
  TicketKeys(std::chrono::seconds lifetime, std::string secret,
             std::int64_t (*now_s)() noexcept = nullptr) noexcept;
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;
  ~TicketKeys();

  static constexpr std::size_t secret_bytes_min = 32;

  [[nodiscard]] bool has(std::chrono::seconds lifetime, const std::string& secret) const noexcept {
    return lifetime == lifetime_ && secret == secret_;
  }

  /// The keys, for another process of this machine. Empty with a secret, which that process has
  /// too. Throws std::bad_alloc.
  [[nodiscard]] std::string save();
  /// Uses saved keys, as if this object had made them. Returns false if the text is malformed. Call
  /// it before the first use().
  [[nodiscard]] bool load(std::string_view saved) noexcept;

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
  [[nodiscard]] Key derive(std::int64_t period) const noexcept;
  [[nodiscard]] Key find_derived(const unsigned char* name, bool encrypt,
                                 bool& newest) const noexcept;
  [[nodiscard]] Key copy(const unsigned char* name, bool encrypt, bool& newest) noexcept;

  const std::chrono::seconds lifetime_;
  std::string secret_;
  std::int64_t (*const now_s_)() noexcept;
  /// Fetched once, because OpenSSL 3.0 otherwise looks for it with each ticket, under a lock of the
  /// process. Null if memory ran out.
  const CipherPointer cipher_;
  std::mutex mutex_;
  std::array<Key, 3> keys_;  ///< The newest first.
};

}  // namespace tambour::tls::detail
