// StrikeRegister: what was accepted in the current and the last period, and the new identifier of a
// forked process.
#include "tls/resumption/strike_register.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/clock.h"
#include "base/process_number.h"

namespace tambour::tls::detail {
namespace {

constexpr std::size_t slots_count = 65536;
static_assert(StrikeRegister::hellos_per_period_max < slots_count);

std::int64_t seconds_of_day_clock() noexcept { return base::wall_ns() / base::ns_per_s; }

/// A set of hashes that are not 0, with linear probing.
struct Period {
  std::vector<std::uint64_t> slots = std::vector<std::uint64_t>(slots_count);
  std::size_t used = 0;

  /// Returns the slot with `hash`, or the free one in which it has to be stored. The set is not
  /// full.
  [[nodiscard]] std::uint64_t& find(std::uint64_t hash) noexcept {
    std::size_t at = hash % slots_count;
    while (slots[at] != 0 && slots[at] != hash) at = (at + 1) % slots_count;
    return slots[at];
  }
  void clear() noexcept {
    if (used > 0) std::ranges::fill(slots, 0);
    used = 0;
  }
};

}  // namespace

/// What one process has accepted.
class StrikeRegister::Memory {
 public:
  /// Throws std::bad_alloc.
  Memory() { usable_ = RAND_bytes(identifier_.data(), int(identifier_.size())) == 1; }

  /// Takes ownership of what this replaces in a forked child. It is kept, because a thread of the
  /// parent may have used it during fork(2).
  void keep(Memory* of_parent) noexcept { of_parent_.reset(of_parent); }

  [[nodiscard]] bool is_of_this_process() const noexcept { return process_.is_current(); }
  [[nodiscard]] const Identifier& identifier() const noexcept { return identifier_; }
  [[nodiscard]] bool accept(std::span<const unsigned char> random, std::int64_t now_s) noexcept;

 private:
  [[nodiscard]] std::uint64_t hash_of(std::span<const unsigned char> random) const noexcept;
  [[nodiscard]] bool begin_period(std::int64_t number) noexcept;

  const base::OwningProcess process_;
  std::unique_ptr<Memory> of_parent_;
  Identifier identifier_{};
  bool usable_ = false;  ///< The identifier is random.
  std::mutex mutex_;
  std::int64_t number_ = 0;  ///< Of the current period.
  Period current_;
  Period former_;
};

StrikeRegister::StrikeRegister(std::int64_t (*now_s)() noexcept)
    : now_s_(now_s != nullptr ? now_s : &seconds_of_day_clock) {
  memory_ = new Memory;
}

StrikeRegister::~StrikeRegister() { delete memory_.load(); }

StrikeRegister::Memory* StrikeRegister::memory() noexcept {
  Memory* current = memory_.load(std::memory_order_acquire);
  if (current->is_of_this_process()) [[likely]]
    return current;
  std::unique_ptr<Memory> created;
  try {
    created = std::make_unique<Memory>();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  Memory* const of_parent = current;
  // Otherwise another thread of the child was first.
  if (!memory_.compare_exchange_strong(current, created.get())) return current;
  created->keep(of_parent);
  return created.release();
}

/// Clients choose their random numbers, so the hash depends on the identifier, which they do not
/// know: it is in encrypted tickets. Returns 0 if OpenSSL fails.
std::uint64_t StrikeRegister::Memory::hash_of(
    std::span<const unsigned char> random) const noexcept {
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
bool StrikeRegister::Memory::begin_period(std::int64_t number) noexcept {
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

bool StrikeRegister::Memory::accept(std::span<const unsigned char> random,
                                    std::int64_t now_s) noexcept {
  const std::uint64_t hash = hash_of(random);
  if (hash == 0 || !usable_) return false;
  const std::scoped_lock lock(mutex_);
  if (!begin_period(now_s / period_s)) return false;
  if (former_.find(hash) == hash) return false;
  std::uint64_t& slot = current_.find(hash);
  if (slot == hash || current_.used >= hellos_per_period_max) return false;
  slot = hash;
  ++current_.used;
  return true;
}

bool StrikeRegister::accept(std::span<const unsigned char> random) noexcept {
  Memory* const mine = memory();
  return mine != nullptr && mine->accept(random, now_s_());
}

StrikeRegister::Identifier StrikeRegister::identifier() noexcept {
  const Memory* const mine = memory();
  return mine != nullptr ? mine->identifier() : Identifier{};
}

}  // namespace tambour::tls::detail
