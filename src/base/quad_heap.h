// A heap with four children per node and the key stored next to the pointer.
//
// Four children of 16 bytes fill one cache line, so each level costs one cache miss, where a binary
// heap of pointers costs four. The root is at index 3, which puts the children of node k at indices
// 4k - 8 to 4k - 5: the start of a cache line, because the array is aligned. Index 0 means "not in
// the heap".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace tambour::detail::base {

/// Holds pointers to items by ascending key. Place::set(item, index) stores the position in the
/// item. Owns its array, not the items. Only functions that allocate memory (reserve(),
/// take_up_to()) can fail.
template <class Item, class Place>
class QuadHeap {
 public:
  using Key = std::int64_t;

  struct Entry {
    Key key;
    Item* item;
  };

  QuadHeap() = default;
  QuadHeap(const QuadHeap&) = delete;
  QuadHeap& operator=(const QuadHeap&) = delete;
  ~QuadHeap() { release(entries_); }

  [[nodiscard]] bool empty() const noexcept { return end_ == root; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - root; }
  [[nodiscard]] Key top_key() const noexcept { return entries_[root].key; }
  [[nodiscard]] Item& top() const noexcept { return *entries_[root].item; }

  /// The entries by index, as passed to Place::set(): from first_index() to before end_index().
  [[nodiscard]] Key key(std::uint32_t index) const noexcept { return entries_[index].key; }
  [[nodiscard]] Item& item(std::uint32_t index) const noexcept { return *entries_[index].item; }
  static constexpr std::uint32_t first_index() noexcept { return root; }
  [[nodiscard]] std::uint32_t end_index() const noexcept {
    return static_cast<std::uint32_t>(end_);
  }
  /// The root is its own parent.
  static std::uint32_t parent(std::uint32_t index) noexcept {
    return index == root ? index : static_cast<std::uint32_t>(parent_of(index));
  }

  /// Reserves space for `items` entries in total. Throws std::bad_alloc without any effect.
  void reserve(std::size_t items) {
    if (items <= capacity_) return;
    std::size_t wanted = capacity_ == 0 ? 13 : capacity_ * 2;
    if (wanted < items) wanted = items;
    auto* grown = static_cast<Entry*>(::operator new((wanted + root) * sizeof(Entry), line));
    if (!empty()) std::memcpy(grown + root, entries_ + root, size() * sizeof(Entry));
    release(entries_);
    entries_ = grown;
    capacity_ = wanted;
  }

  /// The space must have been reserved.
  void push(Item& item, Key key) noexcept { sift_up(end_++, {key, &item}); }

  void remove(std::uint32_t index) noexcept {
    Place::set(*entries_[index].item, 0);
    const Entry last = entries_[--end_];
    if (index != end_) settle(index, last);
  }

  void pop() noexcept {
    Place::set(*entries_[root].item, 0);
    const Entry last = entries_[--end_];
    if (end_ != root) sift_hole_down(root, last);
  }

  void lower_key(std::uint32_t index, Key key) noexcept {
    sift_up(index, {key, entries_[index].item});
  }

  /// Call if the item at `index` has moved to a new address.
  void replace(std::uint32_t index, Item& item) noexcept { entries_[index].item = &item; }

  void raise_top_key(Key key) noexcept { sift_down(root, {key, entries_[root].item}); }

  /// Removes and returns all items whose key is at most `limit`, in ascending order. For many items
  /// this is far cheaper than pop(), which sifts an entry through the whole depth each time. Throws
  /// std::bad_alloc without any effect.
  [[nodiscard]] std::vector<Entry> take_up_to(Key limit) {
    // These items form a tree that includes the root. Visit it by level, so that the indices
    // ascend.
    std::vector<std::size_t> holes;
    if (!empty() && top_key() <= limit) holes.push_back(root);
    for (std::size_t i = 0; i < holes.size(); ++i) {
      const std::size_t first = first_child_of(holes[i]);
      for (std::size_t child = first; child < first + 4 && child < end_; ++child) {
        if (entries_[child].key <= limit) holes.push_back(child);
      }
    }
    std::vector<Entry> taken;
    taken.reserve(holes.size());
    for (const std::size_t hole : holes) taken.push_back(entries_[hole]);
    // Fill the holes bottom-up: below each hole the heap property already holds.
    for (std::size_t i = holes.size(); i-- > 0;) {
      const Entry last = entries_[--end_];
      if (holes[i] != end_) sift_down(holes[i], last);
    }
    std::ranges::sort(taken, {}, &Entry::key);
    for (const Entry& entry : taken) Place::set(*entry.item, 0);
    return taken;
  }

  /// Replaces each key with f(item, key), which must preserve the order of the keys.
  template <class F>
  void change_keys(F&& f) noexcept {
    for (std::size_t i = root; i < end_; ++i)
      entries_[i].key = f(*entries_[i].item, entries_[i].key);
  }

  /// Returns whether f is true for any item. Visits the top first and the others in no order.
  template <class F>
  [[nodiscard]] bool any_of(F&& f) const {
    for (std::size_t i = root; i < end_; ++i) {
      if (f(*entries_[i].item)) return true;
    }
    return false;
  }

  /// Removes the items for which f is true. Costs as much as rebuilding the heap.
  template <class F>
  void remove_if(F&& f) noexcept {
    std::size_t kept = root;
    for (std::size_t i = root; i < end_; ++i) {
      if (f(*entries_[i].item)) {
        Place::set(*entries_[i].item, 0);
      } else {
        put(kept++, entries_[i]);
      }
    }
    end_ = kept;
    if (size() < 2) return;
    for (std::size_t i = parent_of(end_ - 1) + 1; i-- > root;) sift_down(i, entries_[i]);
  }

  /// Empties the heap and calls f for each item, in no order.
  template <class F>
  void drain(F&& f) noexcept {
    for (std::size_t i = root; i < end_; ++i) {
      Place::set(*entries_[i].item, 0);
      f(*entries_[i].item);
    }
    end_ = root;
  }

 private:
  static constexpr std::size_t root = 3;
  static constexpr std::align_val_t line{64};

  static void release(Entry* entries) noexcept { ::operator delete(entries, line); }

  static std::size_t parent_of(std::size_t index) noexcept { return index / 4 + 2; }
  static std::size_t first_child_of(std::size_t index) noexcept { return index * 4 - 8; }

  void put(std::size_t index, Entry entry) noexcept {
    entries_[index] = entry;
    Place::set(*entry.item, static_cast<std::uint32_t>(index));
  }

  void settle(std::size_t index, Entry entry) noexcept {
    if (index != root && entry.key < entries_[parent_of(index)].key) {
      sift_up(index, entry);
    } else {
      sift_down(index, entry);
    }
  }

  void sift_up(std::size_t index, Entry entry) noexcept {
    while (index != root) {
      const std::size_t parent = parent_of(index);
      if (entries_[parent].key <= entry.key) break;
      put(index, entries_[parent]);
      index = parent;
    }
    put(index, entry);
  }

  /// Returns the child of `index` with the smallest key. `index` must have a child.
  [[nodiscard]] std::size_t least_child_of(std::size_t index) const noexcept {
    const std::size_t first = first_child_of(index);
    if (first + 4 <= end_) {
      // Two independent comparisons and one more avoid a chain of mispredicted branches.
      const std::size_t a = first + (entries_[first + 1].key < entries_[first].key);
      const std::size_t b = first + 2 + (entries_[first + 3].key < entries_[first + 2].key);
      return entries_[b].key < entries_[a].key ? b : a;
    }
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end_; ++child) {
      if (entries_[child].key < entries_[least].key) least = child;
    }
    return least;
  }

  void sift_down(std::size_t index, Entry entry) noexcept {
    while (first_child_of(index) < end_) {
      const std::size_t child = least_child_of(index);
      if (entry.key <= entries_[child].key) break;
      put(index, entries_[child]);
      index = child;
    }
    put(index, entry);
  }

  /// For an entry taken from the bottom, which most likely belongs there: moves the hole to the
  /// bottom without comparing with the entry, then sifts the entry up.
  void sift_hole_down(std::size_t index, Entry entry) noexcept {
    while (first_child_of(index) < end_) {
      const std::size_t child = least_child_of(index);
      put(index, entries_[child]);
      index = child;
    }
    sift_up(index, entry);
  }

  Entry* entries_ = nullptr;
  std::size_t end_ = root;
  std::size_t capacity_ = 0;
};

}  // namespace tambour::detail::base
