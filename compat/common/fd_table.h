// The records of a drop-in's file descriptors, by number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace tambour::compat {

/// A table of records that do not move, in chunks that are allocated when a descriptor of their
/// range is used. A record exists until the table is destroyed.
///
///   struct Traits {
///     static void* reallocate(void* memory, std::size_t bytes) noexcept;  null if there is none
///     static void free(void* memory) noexcept;
///   };
template <class Record, class Traits>
class FdTable {
 public:
  FdTable() = default;
  FdTable(const FdTable&) = delete;
  FdTable& operator=(const FdTable&) = delete;
  ~FdTable() {
    for (unsigned chunk = 0; chunk < chunk_count_; ++chunk) {
      if (chunks_[chunk] == nullptr) continue;
      std::destroy_n(chunks_[chunk], chunk_size);
      Traits::free(chunks_[chunk]);
    }
    if (chunks_ != nullptr) Traits::free(static_cast<void*>(chunks_));
  }

  /// Returns null if the descriptor is negative, or if it was not made.
  [[nodiscard]] Record* find(int fd) noexcept {
    const auto number = static_cast<unsigned>(fd);  // Out of range if negative.
    const unsigned chunk = number / chunk_size;
    if (chunk >= chunk_count_) return nullptr;
    Record* const records = chunks_[chunk];
    return records == nullptr ? nullptr : records + number % chunk_size;
  }

  /// Returns the record of a descriptor, which is at least 0. The records of its chunk are made as
  /// `Record(owner, fd)`. Returns null if there is no memory.
  template <class Owner>
  [[nodiscard]] Record* make(Owner& owner, int fd) noexcept {
    const auto number = static_cast<unsigned>(fd);
    const unsigned chunk = number / chunk_size;
    if (chunk >= chunk_count_ && !grow(chunk + 1)) return nullptr;
    if (chunks_[chunk] == nullptr) {
      void* const memory = Traits::reallocate(nullptr, chunk_size * sizeof(Record));
      if (memory == nullptr) return nullptr;
      auto* const records = static_cast<Record*>(memory);
      for (unsigned i = 0; i < chunk_size; ++i)
        ::new (records + i) Record(owner, static_cast<int>(chunk * chunk_size + i));
      chunks_[chunk] = records;
    }
    return chunks_[chunk] + number % chunk_size;
  }

  /// The descriptors from here on need a larger table.
  [[nodiscard]] int end() const noexcept { return static_cast<int>(chunk_count_ * chunk_size); }

  /// Calls f(record) for each record, in ascending order.
  template <class F>
  void for_each(F&& f) {
    for (unsigned chunk = 0; chunk < chunk_count_; ++chunk) {
      if (chunks_[chunk] == nullptr) continue;
      for (unsigned i = 0; i < chunk_size; ++i) f(chunks_[chunk][i]);
    }
  }

 private:
  static constexpr unsigned chunk_size = 16;
  static constexpr unsigned chunks_min = 4;

  [[nodiscard]] bool grow(unsigned needed) noexcept {
    const unsigned wanted = std::max({needed, chunk_count_ * 2, chunks_min});
    void* const grown = Traits::reallocate(static_cast<void*>(chunks_), wanted * sizeof(Record*));
    if (grown == nullptr) return false;
    chunks_ = static_cast<Record**>(grown);
    std::fill(chunks_ + chunk_count_, chunks_ + wanted, nullptr);
    chunk_count_ = wanted;
    return true;
  }

  Record** chunks_ = nullptr;  ///< Of `chunk_count_`, some of which are null.
  unsigned chunk_count_ = 0;
};

}  // namespace tambour::compat
