#include "tls/strike_register.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/clock.h"

namespace tambour::tls {
namespace {

constexpr std::size_t slots_count = 65536;
static_assert(StrikeRegister::hellos_per_period_max < slots_count);

std::int64_t seconds_of_day_clock() noexcept { return base::wall_ns() / base::ns_per_s; }

}  // namespace

StrikeRegister::StrikeRegister(std::int64_t (*now_s)() noexcept)
    : now_s_(now_s != nullptr ? now_s : &seconds_of_day_clock) {
  current_.slots.resize(slots_count);
  former_.slots.resize(slots_count);
  usable_ = RAND_bytes(identifier_.data(), int(identifier_.size())) == 1;
}

/// Returns the slot with `hash`, or the free one in which it has to be stored. The set is not full.
std::uint64_t& StrikeRegister::Period::find(std::uint64_t hash) noexcept {
  std::size_t at = hash % slots_count;
  while (slots[at] != 0 && slots[at] != hash) at = (at + 1) % slots_count;
  return slots[at];
}

void StrikeRegister::Period::clear() noexcept {
  if (used > 0) std::ranges::fill(slots, 0);
  used = 0;
}

/// Clients choose their random numbers, so the hash depends on the identifier, which they do not
/// know: it is in encrypted tickets. Returns 0 if OpenSSL fails.
std::uint64_t StrikeRegister::hash_of(std::span<const unsigned char> random) const noexcept {
  std::array<unsigned char, 64> text{};
  std::ranges::copy(identifier_, text.begin());
  std::ranges::copy(random.first(std::min(random.size(), text.size() - identifier_.size())),
                    text.begin() + identifier_.size());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    return 0;
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

/// Returns false if the clock was set back: what has been forgotten could be accepted again.
bool StrikeRegister::begin_period(std::int64_t number) noexcept {
  if (number < number_) return false;
  if (number == number_) return true;
  if (number == number_ + 1) {
    std::swap(current_, former_);
  } else {
    former_.clear();
  }
  current_.clear();
  number_ = number;
  return true;
}

bool StrikeRegister::accept(std::span<const unsigned char> random) noexcept {
  const std::uint64_t hash = hash_of(random);
  if (hash == 0 || !usable_) return false;
  const std::scoped_lock lock(mutex_);
  if (!begin_period(now_s_() / period_s)) return false;
  if (former_.find(hash) == hash) return false;
  std::uint64_t& slot = current_.find(hash);
  if (slot == hash || current_.used >= hellos_per_period_max) return false;
  slot = hash;
  ++current_.used;
  return true;
}

}  // namespace tambour::tls
