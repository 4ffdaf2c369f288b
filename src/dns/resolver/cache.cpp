// The table of the cache: open addressing, a list in the order of use, and removal when the limit
// of bytes is reached.
#include "dns/resolver/cache.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"

namespace tambour::dns::detail {
namespace {

constexpr std::size_t slots_min = 64;
/// The allocations of an entry, its slots, and the control block of the answer.
constexpr std::size_t overhead_bytes = 256;

std::size_t size_of(std::string_view key, const Answer& answer) noexcept {
  return overhead_bytes + sizeof(Answer) + key.size() + answer.message.capacity() +
         answer.addresses.capacity() * sizeof(IpAddress);
}

}  // namespace

std::size_t Cache::slot_of(std::string_view key, std::size_t hash) const noexcept {
  std::size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot].entry != nullptr; slot = after(slot)) {
    if (slots_[slot].hash == hash && slots_[slot].entry->key == key) break;
  }
  return slot;
}

Cache::Hit Cache::find(std::string_view key, std::int64_t now_ns) noexcept {
  if (slots_.empty()) return {};
  const std::size_t slot = slot_of(key, hash_(key));
  Entry* const entry = slots_[slot].entry;
  if (entry == nullptr) return {};
  if (now_ns >= entry->until_ns) {
    remove(slot);
    return {};
  }
  use(*entry);
  return {.answer = entry->answer, .age_ns = now_ns - entry->since_ns};
}

void Cache::put(std::string key, AnswerPointer answer, std::int64_t now_ns,
                std::int64_t lifetime_ns) {
  const std::size_t bytes = size_of(key, *answer);
  const std::size_t hash = hash_(key);
  if (!slots_.empty()) {
    const std::size_t former = slot_of(key, hash);
    if (slots_[former].entry != nullptr) remove(former);
  }
  if (lifetime_ns <= 0 || bytes > bytes_max_) return;
  while (bytes_ + bytes > bytes_max_) {
    const Entry& oldest = *order_.front();
    remove(slot_of(oldest.key, oldest.hash));
  }
  grow();
  auto added = std::make_unique<Entry>();
  added->key = std::move(key);
  added->hash = hash;
  added->answer = std::move(answer);
  added->since_ns = now_ns;
  added->until_ns = base::saturating_add(now_ns, lifetime_ns);
  added->bytes = bytes;
  use(*added);
  const std::size_t slot = slot_of(added->key, hash);
  slots_[slot] = {.hash = hash, .entry = added.release()};
  bytes_ += bytes;
  ++count_;
}

/// Makes room for one more: at most two thirds of the slots are used.
void Cache::grow() {
  if ((count_ + 1) * 3 <= slots_.size() * 2) return;
  std::vector<Slot> former(std::max(slots_.size() * 2, slots_min));
  former.swap(slots_);
  for (const Slot& slot : former) {
    if (slot.entry != nullptr) slots_[slot_of(slot.entry->key, slot.hash)] = slot;
  }
}

void Cache::use(Entry& entry) noexcept {
  entry.unlink();
  order_.push_back(entry);
}

void Cache::remove(std::size_t slot) noexcept {
  const std::unique_ptr<Entry> removed(slots_[slot].entry);
  bytes_ -= removed->bytes;
  --count_;
  // Moves the entries that follow closer to the slots of their hashes.
  for (std::size_t next = after(slot); slots_[next].entry != nullptr; next = after(next)) {
    const std::size_t mask = slots_.size() - 1;
    const std::size_t distance = (next - slots_[next].hash) & mask;
    if (distance < ((next - slot) & mask)) continue;
    slots_[slot] = slots_[next];
    slot = next;
  }
  slots_[slot] = {};
}

void Cache::clear() noexcept {
  for (const Slot& slot : slots_) delete slot.entry;
  slots_.clear();
  bytes_ = count_ = 0;
}

}  // namespace tambour::dns::detail
