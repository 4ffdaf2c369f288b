// The implementation of Buffer: blocks of memory, segments that refer to parts of them, and the
// per-thread pool of both. For buffer*.cpp only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <tambour/bytes/buffer.h>

#include "bytes/read_size.h"

namespace tambour {

/// The part of a block that a buffer refers to. No segment in the chain is empty.
struct Buffer::Segment {
  /// The result of the last search: the first `size` bytes of the buffer do not contain `pattern`.
  struct Searched {
    std::uint64_t size : 56 = 0;
    std::uint64_t pattern : 8 = 0;
  };

  Segment* next;
  Segment* previous;
  Block* block;
  std::byte* begin;
  std::byte* end;
  Searched searched{};  ///< Used in the last segment of a chain only.

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
  [[nodiscard]] bool is_short() const noexcept { return size() <= detail::bytes::tiny_block_bytes; }
  /// Returns whether the bytes move to the next block that a neighbour needs.
  [[nodiscard]] inline bool is_merged() const noexcept;
  /// Returns whether the block is too large for the bytes of the segment to be kept.
  [[nodiscard]] inline bool is_sparse() const noexcept;
  /// Returns whether a read received much less than the block has room for.
  [[nodiscard]] inline bool is_mostly_free() const noexcept;
  [[nodiscard]] inline std::size_t room_behind() const noexcept;
  [[nodiscard]] inline std::size_t room_before() const noexcept;

  /// Returns an empty segment at the start of a new block.
  static inline Segment* make(std::size_t capacity);
  /// As make(), but a short message gets a tiny block.
  static inline Segment* make_compact(std::size_t capacity);
  /// Returns null if there is no memory.
  static inline Segment* try_make_tiny() noexcept;
  /// Returns an empty segment at the start of a new block of little more than `capacity` bytes, for
  /// bytes that the program may keep for a long time.
  static inline Segment* make_for_keeping(std::size_t capacity);
  /// Returns a segment that refers to `bytes`, which `owner` keeps alive. `fd`: see ForeignBlock.
  static Segment* make_of(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                          int fd = -1);
  /// Returns another segment of the same block.
  [[nodiscard]] Segment* slice(std::byte* from, std::byte* to) const;
  static inline void drop(Segment* segment) noexcept;

  /// Copies bytes behind the last one, or before the first one. The block must have the room.
  inline void append(std::span<const std::byte> bytes) noexcept;
  inline void prepend(std::span<const std::byte> bytes) noexcept;
};

/// A block of memory and the number of segments that refer to it. The bytes follow the header in
/// memory; those of a foreign block belong to the owner of a ForeignBlock.
struct Buffer::Block {
  enum class Kind : std::uint8_t { small, large, huge, tiny, odd, foreign };

  std::atomic<std::size_t> owners{1};
  std::size_t capacity;
  std::byte* data;
  Kind kind;
  /// The first segment of this block, usually the only one.
  Segment first{.next = nullptr, .previous = nullptr, .block = this, .begin = data, .end = data};

  [[nodiscard]] bool is_unshared() const noexcept {
    // Acquire: reads of the block by former owners happen before this thread writes to it.
    return owners.load(std::memory_order_acquire) == 1;
  }
  /// Returns whether the calling thread may write to the block. The only owner may: no other owner
  /// can be added concurrently.
  [[nodiscard]] bool writable() const noexcept { return kind != Kind::foreign && is_unshared(); }
  [[nodiscard]] std::byte* end() const noexcept { return data + capacity; }
  /// Returns whether taking `size` bytes copies them to memory of their own. Sharing them would
  /// keep the whole block alive, so a peer could make a program that keeps short messages hold
  /// thousands of times their size. A shared part keeps at most 64 times its size alive.
  [[nodiscard]] bool is_copied_out(std::size_t size) const noexcept {
    return kind != Kind::foreign && capacity > detail::bytes::tiny_block_bytes &&
           size <= capacity / 4 &&
           (size <= detail::bytes::copied_bytes_max || size <= capacity / 64);
  }

  static inline Block* make(std::size_t capacity);
  static inline Block* make_for_keeping(std::size_t capacity);
  static inline Block* make(Kind kind, std::size_t capacity);
  /// Releases one reference.
  static inline void drop(Block* block) noexcept;
};

/// A block whose bytes are not in its own memory.
struct Buffer::ForeignBlock : Block {
  std::shared_ptr<const void> owner;  ///< Keeps the bytes alive.
  int fd = -1;  ///< Of a file that consists of the bytes, and that `owner` keeps open; -1: none.
};

/// The blocks and segments that this thread freed last, kept for reuse.
struct Buffer::Pool {
  struct Free {
    Free* next;
  };

  /// A free list of memory blocks of one size.
  struct FreeList {
    std::size_t bytes;
    std::size_t limit;  ///< Most blocks to keep.
    /// `limit` once the thread's Closer exists, which frees them; else 0.
    std::size_t kept_max = 0;
    std::size_t kept = 0;
    Free* first = nullptr;

    void* take() {
      if (first == nullptr) return ::operator new(bytes);
      --kept;
      return std::exchange(first, first->next);
    }
    void give(void* memory) noexcept {
      if (kept == kept_max) return free_excess(memory);
      ++kept;
      first = new (memory) Free{first};
    }
    /// Called when the list is full, or when the thread has no Closer yet.
    void free_excess(void* memory) noexcept;
    void close() noexcept {
      kept_max = 0;
      drain();
    }
    void drain() noexcept {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
      kept = 0;
    }
  };

  /// One free list for each kind of block, and one for segments that are not a block's own.
  std::array<FreeList, 4> blocks{
      FreeList{.bytes = sizeof(Block) + detail::bytes::small_block_bytes, .limit = 64},
      FreeList{.bytes = sizeof(Block) + detail::bytes::large_block_bytes, .limit = 16},
      FreeList{.bytes = sizeof(Block) + detail::bytes::huge_block_bytes, .limit = 4},
      FreeList{.bytes = sizeof(Block) + detail::bytes::tiny_block_bytes, .limit = 256},
  };
  FreeList segments{.bytes = sizeof(Segment), .limit = 256};

  [[nodiscard]] FreeList& free_list_of(Block::Kind kind) noexcept {
    return blocks[std::size_t(kind)];
  }

  /// Frees the lists when the thread ends. A buffer may be destroyed later, for example a global
  /// one or another thread_local one.
  struct Closer {
    Closer() noexcept;
    ~Closer();
  };

  /// The pool of this thread. constinit: access needs no check for initialization.
  static thread_local constinit Pool mine;
};

inline std::size_t Buffer::Segment::room_behind() const noexcept {
  return block->writable() ? static_cast<std::size_t>(block->end() - end) : 0;
}

inline std::size_t Buffer::Segment::room_before() const noexcept {
  return block->writable() ? static_cast<std::size_t>(begin - block->data) : 0;
}

inline bool Buffer::Segment::is_merged() const noexcept {
  return is_short() && block->kind != Block::Kind::foreign;
}

inline bool Buffer::Segment::is_sparse() const noexcept {
  return size() <= block->capacity / 64 && block->capacity > detail::bytes::tiny_block_bytes &&
         block->kind != Block::Kind::foreign;
}

inline bool Buffer::Segment::is_mostly_free() const noexcept {
  return size() <= block->capacity / 16 && block->capacity > detail::bytes::small_block_bytes;
}

inline Buffer::Block* Buffer::Block::make(std::size_t capacity) {
  // A size close to a pooled size is rounded up to it.
  Kind kind = Kind::odd;
  if (capacity <= detail::bytes::small_block_bytes) {
    kind = Kind::small;
    capacity = detail::bytes::small_block_bytes;
  } else if (capacity <= detail::bytes::large_block_bytes &&
             capacity >= detail::bytes::large_block_bytes / 4) {
    kind = Kind::large;
    capacity = detail::bytes::large_block_bytes;
  } else if (capacity <= detail::bytes::huge_block_bytes &&
             capacity >= detail::bytes::huge_block_bytes / 4) {
    kind = Kind::huge;
    capacity = detail::bytes::huge_block_bytes;
  }
  return make(kind, capacity);
}

inline Buffer::Block* Buffer::Block::make_for_keeping(std::size_t capacity) {
  if (capacity <= detail::bytes::tiny_block_bytes)
    return make(Kind::tiny, detail::bytes::tiny_block_bytes);
  return make(Kind::odd, capacity);
}

inline Buffer::Block* Buffer::Block::make(Kind kind, std::size_t capacity) {
  void* const memory = kind == Kind::odd ? ::operator new(sizeof(Block) + capacity)
                                         : Pool::mine.free_list_of(kind).take();
  auto* data = static_cast<std::byte*>(memory) + sizeof(Block);
  return new (memory) Block{.capacity = capacity, .data = data, .kind = kind};
}

inline void Buffer::Block::drop(Block* block) noexcept {
  if (!block->is_unshared() && block->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Kind kind = block->kind;
  if (kind < Kind::odd) return Pool::mine.free_list_of(kind).give(block);
  if (kind == Kind::foreign) {
    delete static_cast<ForeignBlock*>(block);
  } else {
    ::operator delete(block);
  }
}

inline Buffer::Segment* Buffer::Segment::make(std::size_t capacity) {
  return &Block::make(capacity)->first;
}

inline Buffer::Segment* Buffer::Segment::try_make_tiny() noexcept try {
  return &Block::make(Block::Kind::tiny, detail::bytes::tiny_block_bytes)->first;
} catch (const std::bad_alloc&) {
  return nullptr;
}

inline Buffer::Segment* Buffer::Segment::make_compact(std::size_t capacity) {
  if (capacity <= detail::bytes::tiny_block_bytes)
    return &Block::make(Block::Kind::tiny, detail::bytes::tiny_block_bytes)->first;
  return make(capacity);
}

inline Buffer::Segment* Buffer::Segment::make_for_keeping(std::size_t capacity) {
  return &Block::make_for_keeping(capacity)->first;
}

inline void Buffer::Segment::drop(Segment* segment) noexcept {
  Block* const block = segment->block;
  if (segment != &block->first) Pool::mine.segments.give(segment);
  Block::drop(block);
}

inline void Buffer::Segment::append(std::span<const std::byte> bytes) noexcept {
  std::memcpy(end, bytes.data(), bytes.size());
  end += bytes.size();
}

inline void Buffer::Segment::prepend(std::span<const std::byte> bytes) noexcept {
  begin -= bytes.size();
  std::memcpy(begin, bytes.data(), bytes.size());
}

inline Buffer::Segment* Buffer::first() const noexcept {
  return last_ == nullptr ? nullptr : last_->next;
}

inline Buffer::Segment* Buffer::after(const Segment* segment) const noexcept {
  return segment == last_ ? nullptr : segment->next;
}

}  // namespace tambour
