// The routes whose patterns have no parameters, by their paths.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

struct Route;

/// Finds most routes without a walk through the segments of a path: a pattern that consists of text
/// precedes all others that match the same path.
///
/// Ownership: refers to the routes and their patterns. Patterns with a percent sign are not here,
/// because paths are decoded before they are compared: so no encoded path is found.
class RouteIndex {
 public:
  struct Entry {
    std::uint64_t hash = 0;
    std::string_view pattern;
    const Route* route = nullptr;  ///< Null if the entry is free.
  };

  /// Replaces the contents. Throws std::bad_alloc.
  void build(const std::vector<Entry>& routes) {
    entries_.clear();
    if (routes.empty()) return;
    // At most half of the entries are used.
    entries_.resize(std::bit_ceil(2 * routes.size()));
    for (Entry entry : routes) {
      entry.hash = hash_of(entry.pattern);
      std::size_t at = entry.hash & (entries_.size() - 1);
      while (entries_[at].route != nullptr) at = (at + 1) & (entries_.size() - 1);
      entries_[at] = entry;
    }
  }

  /// Null if there is none.
  [[nodiscard]] const Entry* find(std::string_view path) const noexcept {
    if (entries_.empty()) return nullptr;
    const std::uint64_t hash = hash_of(path);
    for (std::size_t at = hash & (entries_.size() - 1); entries_[at].route != nullptr;
         at = (at + 1) & (entries_.size() - 1)) {
      const Entry& entry = entries_[at];
      if (entry.hash != hash || entry.pattern.size() != path.size()) continue;
      // Short texts of the same size have different hashes.
      if (path.size() <= word_size || entry.pattern == path) return &entry;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t word_size = 8;

  /// Clients cannot add entries, so collisions need not be hard to find.
  [[nodiscard]] static std::uint64_t hash_of(std::string_view text) noexcept {
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15;
    std::uint64_t hash = text.size();
    const auto add = [&hash](const char* from, std::size_t size) {
      std::uint64_t word = 0;
      std::memcpy(&word, from, size);
      hash = (hash ^ word) * factor;
      hash ^= hash >> 32U;
    };
    if (text.size() < word_size) {
      constexpr std::size_t half = word_size / 2;
      std::uint64_t word = 0;
      if (text.size() >= half) {
        std::uint32_t first = 0;
        std::uint32_t last = 0;
        std::memcpy(&first, text.data(), half);
        std::memcpy(&last, text.data() + text.size() - half, half);
        word = std::uint64_t{first} << 32U | last;
      } else {
        for (const char c : text) word = word << 8U | static_cast<unsigned char>(c);
      }
      hash = (hash ^ word) * factor;
      return hash ^ hash >> 32U;
    }
    const char* const last = text.data() + text.size() - word_size;
    for (const char* at = text.data(); at < last; at += word_size) add(at, word_size);
    add(last, word_size);
    return hash;
  }

  std::vector<Entry> entries_;
};

}  // namespace tambour::http
