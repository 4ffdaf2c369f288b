// The cache of answers: bounded memory, the least recently used answer is removed first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tambour/clock.h>

#include "dns/resolver/answer.h"
#include "dns/resolver/question.h"

namespace tambour::dns {

class Cache {
 public:
  explicit Cache(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

  struct Hit {
    AnswerPointer answer;  ///< Null if there is none.
    std::int64_t age_ns = 0;
  };
  [[nodiscard]] Hit find(std::string_view key, std::int64_t now_ns);
  /// Replaces an earlier answer. No effect if `lifetime_ns` is not positive.
  void put(std::string_view key, AnswerPointer answer, std::int64_t now_ns,
           std::int64_t lifetime_ns);
  void clear() noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry;
  using Map = std::unordered_map<std::string, Entry, KeyHash, std::equal_to<>>;
  using Order = std::list<Map::iterator>;
  struct Entry {
    AnswerPointer answer;
    std::int64_t since_ns = 0;
    std::int64_t until_ns = 0;
    std::size_t bytes = 0;
    Order::iterator used;
  };

  void remove(Map::iterator entry) noexcept;

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Map entries_;
  Order order_;  ///< The most recently used first.
};

}  // namespace tambour::dns
