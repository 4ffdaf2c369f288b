// The dynamic table of HPACK: RFC 7541, section 2.3.2 and 4.
//
// The texts of all entries are in one memory area, oldest first. A new text is appended to them.
// When the area is full, the texts move to its beginning, or to a larger area. The area has at most
// 5/4 of the size of the table, so that at most four bytes move for one that is added. An empty
// table has no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::h2 {

class DynamicTable {
 public:
  static constexpr std::uint32_t default_size_max = 4096;
  /// A larger size has no effect.
  static constexpr std::uint32_t size_limit = 16 * 1024 * 1024;
  /// What an entry counts in addition to its name and value.
  static constexpr std::uint32_t entry_overhead = 32;

  struct Entry {
    std::uint32_t at = 0;  ///< The position in all texts that were ever added, modulo 2^32.
    std::uint32_t name_size = 0;
    std::uint32_t value_size = 0;
    std::uint32_t hash = 0;  ///< Of the name.
    std::uint32_t tag = 0;   ///< What the user of the table has added.
  };

  DynamicTable() = default;
  DynamicTable(const DynamicTable&) = delete;
  DynamicTable& operator=(const DynamicTable&) = delete;

  /// The number of entries.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// The size as RFC 7541, section 4.1, defines it.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t size_max() const noexcept { return size_max_; }
  /// The number of entries that were ever added, modulo 2^32: the newest has that serial number.
  [[nodiscard]] std::uint32_t serial() const noexcept { return serial_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return text_capacity_ + entry_capacity_ * sizeof(Entry);
  }

  /// Evicts entries until the rest fits.
  void set_size_max(std::uint32_t bytes) noexcept;

  /// 0 is the newest entry; `age` is less than count().
  [[nodiscard]] const Entry& entry(std::uint32_t age) const noexcept {
    return entries_[(serial_ - age) & (entry_capacity_ - 1)];
  }
  /// The name and the value, which follow each other, until an entry is added.
  [[nodiscard]] std::string_view text(const Entry& entry) const noexcept {
    return {text_.get() + (entry.at - text_begin_), entry.name_size + entry.value_size};
  }

  /// Adds an entry, and evicts old ones. An entry that is larger than the table empties it. The
  /// texts must not be in the table. Returns false if memory is exhausted; then nothing is added,
  /// but entries may have been evicted.
  [[nodiscard]] bool add(std::string_view name, std::string_view value, std::uint32_t hash,
                         std::uint32_t tag) noexcept;

 private:
  void evict_until(std::uint32_t size) noexcept;
  [[nodiscard]] bool make_room(std::uint32_t size) noexcept;
  [[nodiscard]] bool grow_entries() noexcept;
  [[nodiscard]] std::uint32_t text_size() const noexcept { return size_ - entry_overhead * count_; }

  std::unique_ptr<Entry[]> entries_;  ///< A ring: the index is the serial number modulo capacity.
  std::unique_ptr<char[]> text_;
  std::uint32_t entry_capacity_ = 0;  ///< A power of two.
  std::uint32_t text_capacity_ = 0;
  std::uint32_t text_begin_ = 0;  ///< The position of the first byte of the area.
  std::uint32_t text_end_ = 0;    ///< The position after the newest text.
  std::uint32_t count_ = 0;
  std::uint32_t serial_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t size_max_ = default_size_max;
};

}  // namespace tambour::http::detail::h2
