// The streams of a connection of HTTP/2, by id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// A sorted vector: ids grow, so that a stream is added at the end, and a connection has few
/// streams at a time. It allocates nothing while their number does not grow.
template <class Pointer>
class H2StreamTable {
 public:
  using Entry = std::pair<std::uint32_t, Pointer>;
  using Iterator = typename std::vector<Entry>::const_iterator;

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] Iterator begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] Iterator end() const noexcept { return entries_.end(); }

  /// end(): there is no such stream.
  [[nodiscard]] Iterator find(std::uint32_t stream_id) const noexcept {
    const Iterator found = std::ranges::lower_bound(entries_, stream_id, {}, &Entry::first);
    return found != end() && found->first == stream_id ? found : end();
  }
  /// The first stream with a greater id.
  [[nodiscard]] Iterator upper_bound(std::uint32_t stream_id) const noexcept {
    return std::ranges::upper_bound(entries_, stream_id, {}, &Entry::first);
  }

  /// The id must be greater than all others. Throws std::bad_alloc.
  void add(std::uint32_t stream_id, Pointer stream) {
    entries_.emplace_back(stream_id, std::move(stream));
  }
  /// Removes a stream that is in the table, and returns the next one.
  Iterator erase(Iterator entry) noexcept { return entries_.erase(entry); }
  [[nodiscard]] Pointer take(Iterator entry) noexcept {
    const auto at = entries_.begin() + (entry - entries_.cbegin());
    Pointer stream = std::move(at->second);
    entries_.erase(at);
    return stream;
  }
  void clear() noexcept { entries_.clear(); }
  /// Frees what an empty table has allocated.
  void release_memory() noexcept {
    if (entries_.empty()) std::vector<Entry>().swap(entries_);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tambour::http
