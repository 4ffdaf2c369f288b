// What a buffer is made of: blocks of memory, the segments of them that it shows, and the pool that
// both come from. For buffer*.cpp only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include <tambour/buffer.h>

#include "net/read_size.h"

namespace tambour {

/// Memory, and how many segments show it. The bytes stand behind the header, or are an owner's.
struct Buffer::Block {
  std::atomic<std::size_t> owners{1};
  std::size_t capacity;
  std::byte* data;
  std::shared_ptr<const void> owner;  ///< Of bytes that are somebody else's.
  bool is_ours = true;                ///< And may be written.

  [[nodiscard]] bool is_unshared() const noexcept {
    // Acquire: what others have read from the block was read before.
    return owners.load(std::memory_order_acquire) == 1;
  }
  /// Whoever alone owns a block may write to it: nobody else can become an owner meanwhile.
  [[nodiscard]] bool writable() const noexcept { return is_ours && is_unshared(); }
  [[nodiscard]] std::byte* end() const noexcept { return data + capacity; }
};

/// Part of a block that a buffer shows; never empty in the chain.
struct Buffer::Segment {
  /// What was searched for last, and so many bytes from the front of the buffer on are not that.
  struct Searched {
    std::uint64_t size : 56 = 0;
    std::uint64_t what : 8 = 0;
  };

  Segment* next;
  Block* block;
  std::byte* begin;
  std::byte* end;
  Searched searched{};  ///< Kept by the last one, so that an empty buffer has none.

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
  [[nodiscard]] std::size_t room_behind() const noexcept {
    return block->writable() ? static_cast<std::size_t>(block->end() - end) : 0;
  }
  [[nodiscard]] std::size_t room_before() const noexcept {
    return block->writable() ? static_cast<std::size_t>(begin - block->data) : 0;
  }

  /// Takes over what the caller owns of the block, also where it throws.
  static Segment* make(Block* block, std::byte* begin, std::byte* end);
  /// Empty, at the start of a new block.
  static Segment* make(std::size_t capacity);
  [[nodiscard]] Segment* share(std::byte* from, std::byte* to) const;
  static void drop(Segment* segment) noexcept;
};

/// The blocks and segments that a thread has used last, kept for the next to come.
struct Buffer::Pool {
  struct Free {
    Free* next;
  };

  /// Pieces of memory of one size.
  struct Shelf {
    std::size_t bytes;
    std::size_t kept_max;
    std::size_t kept = 0;
    Free* first = nullptr;

    void* take() {
      if (first == nullptr) return ::operator new(bytes);
      --kept;
      return std::exchange(first, first->next);
    }
    void give(void* memory) noexcept {
      if (kept == kept_max) {
        ::operator delete(memory);
        return;
      }
      ++kept;
      first = new (memory) Free{first};
    }
    void clear() noexcept {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
  };

  Shelf small{.bytes = 4096, .kept_max = 64};
  /// What a kernel hands over at a time, where there is much.
  Shelf large{.bytes = net::large_block_bytes, .kept_max = 16};
  Shelf segments{.bytes = sizeof(Segment), .kept_max = 256};

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Shelf* shelf : {&small, &large, &segments}) shelf->clear();
  }

  /// Null: a size that is not kept.
  [[nodiscard]] Shelf* shelf_of(std::size_t bytes) noexcept {
    if (bytes == small.bytes) return &small;
    return bytes == large.bytes ? &large : nullptr;
  }

  /// That of this thread; null where the thread is about to end, and has destroyed it.
  static Pool* mine() noexcept;

  static Block* new_block(std::size_t capacity) {
    Pool* const pool = mine();
    std::size_t bytes = sizeof(Block) + capacity;
    for (const std::size_t kept : {std::size_t{4096}, net::large_block_bytes}) {
      // What is nearly as large as one that is kept takes one of those.
      if (bytes > kept / 4 && bytes <= kept) bytes = kept;
    }
    bytes = std::max<std::size_t>(bytes, 4096);
    Shelf* const shelf = pool != nullptr ? pool->shelf_of(bytes) : nullptr;
    void* const memory = shelf != nullptr ? shelf->take() : ::operator new(bytes);
    auto* data = static_cast<std::byte*>(memory) + sizeof(Block);
    return new (memory) Block{.capacity = bytes - sizeof(Block), .data = data, .owner = nullptr};
  }

  static void drop(Block* block) noexcept {
    if (!block->is_unshared() && block->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Pool* const pool = mine();
    const std::size_t bytes = block->is_ours ? sizeof(Block) + block->capacity : sizeof(Block);
    block->~Block();
    Shelf* const shelf = pool != nullptr ? pool->shelf_of(bytes) : nullptr;
    if (shelf != nullptr) return shelf->give(block);
    ::operator delete(block);
  }
};

inline Buffer::Segment* Buffer::first() const noexcept {
  return last_ == nullptr ? nullptr : last_->next;
}

inline Buffer::Segment* Buffer::after(const Segment* segment) const noexcept {
  return segment == last_ ? nullptr : segment->next;
}

}  // namespace tambour
