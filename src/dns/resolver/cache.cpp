#include "dns/resolver/cache.h"

#include <utility>

namespace tambour::dns {
namespace {

/// The nodes of the map and of the list, a slot of the map, and the control block of the answer.
constexpr std::size_t overhead_bytes = 256;

std::size_t size_of(std::string_view key, const Answer& answer) noexcept {
  return overhead_bytes + sizeof(Answer) + key.size() + answer.message.capacity() +
         answer.addresses.capacity() * sizeof(Address);
}

}  // namespace

Cache::Hit Cache::find(std::string_view key, std::int64_t now_ns) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  if (now_ns >= entry.until_ns) {
    remove(found);
    return {};
  }
  if (entry.used != order_.begin()) order_.splice(order_.begin(), order_, entry.used);
  return {.answer = entry.answer, .age_ns = now_ns - entry.since_ns};
}

void Cache::put(std::string_view key, AnswerPointer answer, std::int64_t now_ns,
                std::int64_t lifetime_ns) {
  const std::size_t bytes = size_of(key, *answer);
  if (lifetime_ns <= 0 || bytes > bytes_max_) {
    if (const auto former = entries_.find(key); former != entries_.end()) remove(former);
    return;
  }
  const auto [added, is_new] = entries_.try_emplace(std::string(key));
  Entry& entry = added->second;
  if (is_new) {
    try {
      entry.used = order_.insert(order_.begin(), added);
    } catch (...) {
      entries_.erase(added);
      throw;
    }
  } else {
    bytes_ -= entry.bytes;
    order_.splice(order_.begin(), order_, entry.used);
  }
  // The new one is the first of at least two, or fits.
  entry.bytes = 0;
  while (bytes_ + bytes > bytes_max_) remove(order_.back());
  entry.answer = std::move(answer);
  entry.since_ns = now_ns;
  entry.until_ns = now_ns > INT64_MAX - lifetime_ns ? INT64_MAX : now_ns + lifetime_ns;
  entry.bytes = bytes;
  bytes_ += bytes;
}

void Cache::remove(Map::iterator entry) noexcept {
  bytes_ -= entry->second.bytes;
  order_.erase(entry->second.used);
  entries_.erase(entry);
}

void Cache::clear() noexcept {
  entries_.clear();
  order_.clear();
  bytes_ = 0;
}

}  // namespace tambour::dns
