// The cache of answers: bounded memory, the least recently used answer is removed first.
//
// A table with open addressing. Most lookups of a busy program find nothing and most answers are
// never used again, so what counts is how much memory such a lookup touches: one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>

#include "dns/resolver/answer.h"
#include "dns/resolver/question.h"

namespace tambour::dns::detail {

class Cache {
 public:
  Cache(std::size_t bytes_max, const KeyHash& hash) noexcept : hash_(hash), bytes_max_(bytes_max) {}
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache() { clear(); }

  struct Hit {
    AnswerPointer answer;  ///< Null if there is none.
    std::int64_t age_ns = 0;
  };
  [[nodiscard]] Hit find(std::string_view key, std::int64_t now_ns) noexcept;
  /// Replaces an earlier answer. Keeps none if `lifetime_ns` is not positive.
  void put(std::string key, AnswerPointer answer, std::int64_t now_ns, std::int64_t lifetime_ns);
  void clear() noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry : detail::ListHook<Entry> {
    std::string key;
    std::size_t hash = 0;
    AnswerPointer answer;
    std::int64_t since_ns = 0;
    std::int64_t until_ns = 0;
    std::size_t bytes = 0;
  };
  struct Slot {
    std::size_t hash = 0;
    Entry* entry = nullptr;  ///< Owned; null: the slot is free.
  };

  /// The slot of the key, or the free one in which it would be. Requires a free slot.
  [[nodiscard]] std::size_t slot_of(std::string_view key, std::size_t hash) const noexcept;
  [[nodiscard]] std::size_t after(std::size_t slot) const noexcept {
    return (slot + 1) & (slots_.size() - 1);
  }
  void grow();
  void use(Entry& entry) noexcept;
  void remove(std::size_t slot) noexcept;

  KeyHash hash_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::size_t count_ = 0;
  std::vector<Slot> slots_;             ///< A power of two of them, or none.
  detail::IntrusiveList<Entry> order_;  ///< The least recently used first.
};

}  // namespace tambour::dns::detail
