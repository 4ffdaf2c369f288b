// What a buffer is made of: blocks of memory, the segments of them that it shows, and the pool that
// both come from. For buffer*.cpp only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <tambour/buffer.h>

#include "net/read_size.h"

namespace tambour {

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
  [[nodiscard]] inline std::size_t room_behind() const noexcept;
  [[nodiscard]] inline std::size_t room_before() const noexcept;

  /// Empty, at the start of a new block.
  static inline Segment* make(std::size_t capacity);
  /// Empty, at the start of a new block of little more than `capacity` bytes: for bytes which the
  /// program may keep for long.
  static inline Segment* make_for_keeping(std::size_t capacity);
  /// All of the bytes, which are somebody else's.
  static Segment* make_of(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  /// Another one, of the same block.
  [[nodiscard]] Segment* share(std::byte* from, std::byte* to) const;
  static inline void drop(Segment* segment) noexcept;
};

/// Memory, and how many segments show it. The bytes stand behind the header, or are an owner's.
struct Buffer::Block {
  enum class Kind : std::uint8_t { small, large, huge, tiny, odd, foreign };

  std::atomic<std::size_t> owners{1};
  std::size_t capacity;
  std::byte* data;
  Kind kind;
  /// The first to show it, and mostly the only one.
  Segment own{.next = nullptr, .block = this, .begin = data, .end = data};
  std::shared_ptr<const void> owner{};  ///< Of foreign bytes.

  [[nodiscard]] bool is_unshared() const noexcept {
    // Acquire: what others have read from the block was read before.
    return owners.load(std::memory_order_acquire) == 1;
  }
  /// Whoever alone owns a block may write to it: nobody else can become an owner meanwhile.
  [[nodiscard]] bool writable() const noexcept { return kind != Kind::foreign && is_unshared(); }
  [[nodiscard]] std::byte* end() const noexcept { return data + capacity; }
  /// Whether a part of `size` bytes is copied to memory of its own when a program takes it. Shared,
  /// it would keep the whole block alive, and a peer could make a program that keeps short messages
  /// hold thousands of times their size. A part that is shared keeps at most 64 times its size.
  [[nodiscard]] bool is_copied_out(std::size_t size) const noexcept {
    return kind != Kind::foreign && capacity > net::tiny_room_bytes && size <= capacity / 4 &&
           (size <= 1024 || size <= capacity / 64);
  }

  static inline Block* make(std::size_t capacity);
  static inline Block* make_for_keeping(std::size_t capacity);
  static inline Block* make(Kind kind, std::size_t capacity);
  /// One owner fewer.
  static inline void drop(Block* block) noexcept;
};

/// The blocks and segments that a thread has used last, kept for the next to come.
struct Buffer::Pool {
  struct Free {
    Free* next;
  };

  /// Pieces of memory of one size.
  struct Shelf {
    std::size_t bytes;
    std::size_t limit;         ///< How many are kept,
    std::size_t kept_max = 0;  ///< while the thread sees to it that they are freed.
    std::size_t kept = 0;
    Free* first = nullptr;

    void* take() {
      if (first == nullptr) return ::operator new(bytes);
      --kept;
      return std::exchange(first, first->next);
    }
    void give(void* memory) noexcept {
      if (kept == kept_max) return give_more(memory);
      ++kept;
      first = new (memory) Free{first};
    }
    /// There is no place, unless none has been made yet.
    void give_more(void* memory) noexcept;
    void close() noexcept {
      kept_max = 0;
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
      kept = 0;
    }
  };

  /// By the kind of block; and the segments that are not a block's own.
  std::array<Shelf, 4> blocks{
      Shelf{.bytes = sizeof(Block) + net::small_room_bytes, .limit = 64},
      Shelf{.bytes = sizeof(Block) + net::large_room_bytes, .limit = 16},
      Shelf{.bytes = sizeof(Block) + net::huge_room_bytes, .limit = 4},
      Shelf{.bytes = sizeof(Block) + net::tiny_room_bytes, .limit = 256},
  };
  Shelf segments{.bytes = sizeof(Segment), .limit = 256};

  [[nodiscard]] Shelf& shelf_of(Block::Kind kind) noexcept { return blocks[std::size_t(kind)]; }

  /// Where a thread ends. A buffer may be destroyed later: a global one, or another thread_local.
  struct Closer {
    Closer() noexcept;
    ~Closer();
  };

  /// This thread's. Found without asking whether it was constructed: it needs no constructor.
  static thread_local constinit Pool mine;
};

inline std::size_t Buffer::Segment::room_behind() const noexcept {
  return block->writable() ? static_cast<std::size_t>(block->end() - end) : 0;
}

inline std::size_t Buffer::Segment::room_before() const noexcept {
  return block->writable() ? static_cast<std::size_t>(begin - block->data) : 0;
}

inline Buffer::Block* Buffer::Block::make(std::size_t capacity) {
  // What is nearly as large as one that is kept takes one of those.
  Kind kind = Kind::odd;
  if (capacity <= net::small_room_bytes) {
    kind = Kind::small;
    capacity = net::small_room_bytes;
  } else if (capacity <= net::large_room_bytes && capacity >= net::large_room_bytes / 4) {
    kind = Kind::large;
    capacity = net::large_room_bytes;
  } else if (capacity <= net::huge_room_bytes && capacity >= net::huge_room_bytes / 4) {
    kind = Kind::huge;
    capacity = net::huge_room_bytes;
  }
  return make(kind, capacity);
}

inline Buffer::Block* Buffer::Block::make_for_keeping(std::size_t capacity) {
  if (capacity <= net::tiny_room_bytes) return make(Kind::tiny, net::tiny_room_bytes);
  return make(Kind::odd, capacity);
}

inline Buffer::Block* Buffer::Block::make(Kind kind, std::size_t capacity) {
  void* const memory = kind == Kind::odd ? ::operator new(sizeof(Block) + capacity)
                                         : Pool::mine.shelf_of(kind).take();
  auto* data = static_cast<std::byte*>(memory) + sizeof(Block);
  return new (memory) Block{.capacity = capacity, .data = data, .kind = kind};
}

inline void Buffer::Block::drop(Block* block) noexcept {
  if (!block->is_unshared() && block->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Kind kind = block->kind;
  block->~Block();
  if (kind < Kind::odd) return Pool::mine.shelf_of(kind).give(block);
  ::operator delete(block);
}

inline Buffer::Segment* Buffer::Segment::make(std::size_t capacity) {
  return &Block::make(capacity)->own;
}

inline Buffer::Segment* Buffer::Segment::make_for_keeping(std::size_t capacity) {
  return &Block::make_for_keeping(capacity)->own;
}

inline void Buffer::Segment::drop(Segment* segment) noexcept {
  Block* const block = segment->block;
  if (segment != &block->own) Pool::mine.segments.give(segment);
  Block::drop(block);
}

inline Buffer::Segment* Buffer::first() const noexcept {
  return last_ == nullptr ? nullptr : last_->next;
}

inline Buffer::Segment* Buffer::after(const Segment* segment) const noexcept {
  return segment == last_ ? nullptr : segment->next;
}

}  // namespace tambour
