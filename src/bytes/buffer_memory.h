// Write access to the bytes of a buffer, for codecs that decode in place or encode what is sent at
// once, and the end of what the pool of buffers keeps. Internal.
#pragma once

#include <cstddef>
#include <span>

#include <tambour/bytes/buffer.h>

namespace tambour::detail {

class BufferMemory {
 public:
  /// The memory of buffer.front() if the buffer is the only one that refers to it; empty if another
  /// buffer or the owner of append_shared() could see a change, or if the buffer is empty.
  [[nodiscard]] static std::span<std::byte> writable_front(Buffer& buffer) noexcept;
  /// Buffer::commit() of at least 32 bytes that are sent soon: they stay in the block that
  /// prepare() has returned. Otherwise a short message moves to a small block, for a program that
  /// keeps it.
  static void commit_in_place(Buffer& buffer, std::size_t size) noexcept;
  /// Frees the blocks that this thread keeps for its next buffers.
  static void free_kept_blocks() noexcept;
};

}  // namespace tambour::detail
