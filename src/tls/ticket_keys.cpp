#include "tls/ticket_keys.h"

#include <algorithm>
#include <span>

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

namespace tambour::tls {
namespace {

std::int64_t monotonic_s() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count() + 1;
}

}  // namespace

/// Returns false if there is no key, because random numbers are missing.
bool TicketKeys::rotate(std::int64_t now_s) noexcept {
  const std::int64_t lifetime_s = lifetime_.count();
  for (Key& key : keys_) {
    // A ticket may have been issued until the key was replaced.
    if (key.created_s > 0 && now_s - key.created_s > lifetime_s + lifetime_s / 2 + 1)
      OPENSSL_cleanse(&key, sizeof key);
  }
  if (keys_[0].created_s > 0 && now_s - keys_[0].created_s <= lifetime_s / 2) return true;
  Key fresh;
  if (RAND_bytes(fresh.name.data(), int(fresh.name.size())) != 1 ||
      RAND_priv_bytes(fresh.cipher.data(), int(fresh.cipher.size())) != 1 ||
      RAND_priv_bytes(fresh.mac.data(), int(fresh.mac.size())) != 1)
    return keys_[0].created_s > 0;
  fresh.created_s = now_s;
  std::shift_right(keys_.begin(), keys_.end(), 1);
  keys_[0] = fresh;
  OPENSSL_cleanse(&fresh, sizeof fresh);
  return true;
}

/// Returns a key whose `created_s` is 0 if there is none with this name.
TicketKeys::Key TicketKeys::copy(const unsigned char* name, bool encrypt, bool& newest) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!rotate(monotonic_s())) return {};
  newest = true;
  if (encrypt) return keys_[0];
  for (const Key& key : keys_) {
    if (key.created_s > 0 && std::ranges::equal(key.name, std::span(name, key.name.size())))
      return key;
    newest = false;
  }
  return {};
}

int TicketKeys::use(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                    EVP_MAC_CTX* mac, bool encrypt) noexcept {
  bool newest = false;
  Key key = copy(name, encrypt, newest);
  if (key.created_s == 0) return encrypt ? -1 : 0;
  if (encrypt) {
    std::ranges::copy(key.name, name);
    if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return -1;
  }
  std::array<char, 7> digest{"SHA256"};
  const std::array parameters{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  const bool done = EVP_MAC_CTX_set_params(mac, parameters.data()) == 1 &&
                    EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.cipher.data(), iv,
                                      encrypt ? 1 : 0) == 1;
  OPENSSL_cleanse(&key, sizeof key);
  if (!done) return -1;
  // 2: the session is valid, and the client gets a new ticket.
  return encrypt || newest ? 1 : 2;
}

}  // namespace tambour::tls
