// Times of callbacks by place, and of iterations by duration: written by one thread, read by any.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tambour::detail::loop {

/// Written by one thread.
template <class T>
class PublishedValue {
 public:
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(T amount) noexcept { set(get() + amount); }
  [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{};
};

/// Callbacks that take longer are stalls.
inline constexpr std::int64_t stall_ns = 10'000'000;

/// What the callbacks of each place have taken. `Traits` has static functions hash(place) and
/// is_same(a, b). Thread: note() that of the loop, the others any.
template <class Place, class Traits>
class CallTimes {
 public:
  /// The places that are counted separately. Callbacks of others are counted together.
  static constexpr std::size_t places_max = 256;

  struct Row {
    Place place;
    std::uint64_t calls = 0;
    std::int64_t total_ns = 0;
    std::int64_t longest_ns = 0;
  };

  void note(const Place& place, std::int64_t took_ns) noexcept {
    Entry& entry =
        last_ != nullptr && Traits::is_same(last_->place, place) ? *last_ : entry_of(place);
    last_ = &entry;
    entry.calls.add(1);
    entry.total_ns.add(took_ns);
    if (took_ns > entry.longest_ns.get()) entry.longest_ns.set(took_ns);
    if (took_ns > stall_ns) stalls_.add(1);
  }
  [[nodiscard]] std::uint64_t stalls() const noexcept { return stalls_.get(); }
  /// In no order. Throws std::bad_alloc.
  [[nodiscard]] std::vector<Row> rows() const {
    std::vector<Row> found;
    for (const Entry& entry : entries_) {
      if (!entry.is_used.load(std::memory_order_acquire)) continue;
      found.push_back({.place = entry.place,
                       .calls = entry.calls.get(),
                       .total_ns = entry.total_ns.get(),
                       .longest_ns = entry.longest_ns.get()});
    }
    return found;
  }

 private:
  struct Entry {
    std::atomic<bool> is_used{false};
    Place place{};  ///< Not changed after `is_used` is set.
    PublishedValue<std::uint64_t> calls;
    PublishedValue<std::int64_t> total_ns;
    PublishedValue<std::int64_t> longest_ns;
  };

  [[nodiscard]] Entry& entry_of(const Place& place) noexcept {
    constexpr std::size_t probes_max = 16;
    static_assert((places_max & (places_max - 1)) == 0);
    const std::size_t hash = Traits::hash(place);
    for (std::size_t i = 0; i < probes_max; ++i) {
      Entry& entry = entries_[(hash + i) & (places_max - 1)];
      if (!entry.is_used.load(std::memory_order_relaxed)) {
        entry.place = place;
        entry.is_used.store(true, std::memory_order_release);
        return entry;
      }
      if (Traits::is_same(entry.place, place)) return entry;
    }
    entries_.back().is_used.store(true, std::memory_order_release);
    return entries_.back();
  }

  PublishedValue<std::uint64_t> stalls_;
  /// A hash table with open addressing; the last one is of all other places.
  std::array<Entry, places_max + 1> entries_;
  Entry* last_ = nullptr;  ///< Of the thread of the loop: the next callback often has its place.
};

/// Iterations by the time that their callbacks took. Thread: note() that of the loop, the others
/// any.
class LagHistogram {
 public:
  /// Upper bounds of the buckets.
  static constexpr std::array<std::int64_t, 12> bounds_ns = {
      100'000,    500'000,     1'000'000,   5'000'000,     10'000'000,    25'000'000,
      50'000'000, 100'000'000, 250'000'000, 1'000'000'000, 5'000'000'000, 10'000'000'000};
  /// How many iterations are in each bucket, and in the one beyond.
  using Counts = std::array<std::uint64_t, bounds_ns.size() + 1>;

  void note(std::int64_t took_ns) noexcept {
    const auto bucket = std::ranges::lower_bound(bounds_ns, took_ns) - bounds_ns.begin();
    counts_[static_cast<std::size_t>(bucket)].add(1);
  }
  [[nodiscard]] Counts read() const noexcept {
    Counts counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i].get();
    return counts;
  }

 private:
  std::array<PublishedValue<std::uint64_t>, bounds_ns.size() + 1> counts_;
};

}  // namespace tambour::detail::loop
