// TicketKeys: makes and rotates keys, or derives them from a secret; saves and loads them; passes
// them to OpenSSL.
#include "tls/resumption/ticket_keys.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include <openssl/core_names.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "base/clock.h"

namespace tambour::tls::detail {
namespace {

/// Not 0, which stands for no key.
std::int64_t monotonic_s() noexcept { return base::monotonic_ns() / base::ns_per_s + 1; }
std::int64_t wall_s() noexcept { return base::wall_ns() / base::ns_per_s; }

}  // namespace

TicketKeys::TicketKeys(std::chrono::seconds lifetime, std::string secret,
                       std::int64_t (*now_s)() noexcept) noexcept
    : lifetime_(lifetime),
      secret_(std::move(secret)),
      now_s_(now_s != nullptr ? now_s : (secret_.empty() ? &monotonic_s : &wall_s)),
      cipher_(EVP_CIPHER_fetch(nullptr, "AES-256-CBC", nullptr)) {}

TicketKeys::~TicketKeys() {
  OPENSSL_cleanse(secret_.data(), secret_.size());
  OPENSSL_cleanse(keys_.data(), sizeof keys_);
}

/// Returns the key of a period of half a lifetime; without one if memory runs out.
TicketKeys::Key TicketKeys::derive(std::int64_t period) const noexcept {
  Key key;
  std::array<unsigned char, 32> names{};
  const std::array<std::span<unsigned char>, 3> parts{names, key.cipher, key.mac};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::array<unsigned char, 24> text{"tambour ticket"};
    text[15] = static_cast<unsigned char>(i);
    for (std::size_t at = 0; at < sizeof period; ++at)
      text[16 + at] = static_cast<unsigned char>(period >> (8 * at));
    unsigned size = 0;
    if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), text.data(),
             text.size(), parts[i].data(), &size) == nullptr)
      return {};
  }
  std::ranges::copy(std::span(names).first(key.name.size()), key.name.begin());
  key.created_s = 1;
  return key;
}

/// Tickets of the two periods before this one may still be valid. One of the next period comes from
/// a machine whose clock is ahead.
TicketKeys::Key TicketKeys::find_derived(const unsigned char* name, bool encrypt,
                                         bool& newest) const noexcept {
  const std::int64_t period_s = std::max<std::int64_t>(lifetime_.count() / 2, 1);
  const std::int64_t now = now_s_() / period_s;
  newest = true;
  if (encrypt) return derive(now);
  for (const std::int64_t period : {now, now - 1, now + 1, now - 2}) {
    Key key = derive(period);
    if (std::ranges::equal(key.name, std::span(name, key.name.size()))) return key;
    OPENSSL_cleanse(&key, sizeof key);
    newest = false;
  }
  return {};
}

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

std::string TicketKeys::save() {
  std::string saved;
  if (!secret_.empty() || lifetime_ == std::chrono::seconds::zero()) return saved;
  saved.reserve(sizeof keys_);
  const std::scoped_lock lock(mutex_);
  // Also if no ticket was issued yet: the other process can then resume those that are issued now.
  static_cast<void>(rotate(now_s_()));
  for (const Key& key : keys_) {
    if (key.created_s > 0) saved.append(reinterpret_cast<const char*>(&key), sizeof key);
  }
  return saved;
}

bool TicketKeys::load(std::string_view saved) noexcept {
  static_assert(std::has_unique_object_representations_v<Key>);
  if (saved.size() % sizeof(Key) != 0 || saved.size() > sizeof keys_) return false;
  if (!secret_.empty()) return true;
  const std::scoped_lock lock(mutex_);
  std::memcpy(keys_.data(), saved.data(), saved.size());
  // All processes of a machine have the same monotonic clock.
  const std::int64_t now = now_s_();
  const bool valid = std::ranges::all_of(
      std::span(keys_).first(saved.size() / sizeof(Key)),
      [now](const Key& key) { return key.created_s > 0 && key.created_s <= now; });
  if (!valid) OPENSSL_cleanse(keys_.data(), sizeof keys_);
  return valid;
}

/// Returns a key whose `created_s` is 0 if there is none with this name.
TicketKeys::Key TicketKeys::copy(const unsigned char* name, bool encrypt, bool& newest) noexcept {
  if (!secret_.empty()) return find_derived(name, encrypt, newest);
  const std::scoped_lock lock(mutex_);
  if (!rotate(now_s_())) return {};
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
  const EVP_CIPHER* const method = cipher_ != nullptr ? cipher_.get() : EVP_aes_256_cbc();
  bool newest = false;
  Key key = copy(name, encrypt, newest);
  if (key.created_s == 0) return encrypt ? -1 : 0;
  if (encrypt) {
    std::ranges::copy(key.name, name);
    if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(method)) != 1) return -1;
  }
  std::array<char, 7> digest{"SHA256"};
  const std::array parameters{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  const bool done =
      EVP_MAC_CTX_set_params(mac, parameters.data()) == 1 &&
      EVP_CipherInit_ex(cipher, method, nullptr, key.cipher.data(), iv, encrypt ? 1 : 0) == 1;
  OPENSSL_cleanse(&key, sizeof key);
  if (!done) return -1;
  // 2: the session is valid, and the client gets a new ticket.
  return encrypt || newest ? 1 : 2;
}

}  // namespace tambour::tls::detail
